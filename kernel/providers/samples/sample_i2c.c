// SPDX-License-Identifier: GPL-2.0-only
/*
 * A complete provider for a device on a slow bus, to copy: a thermometer on I2C
 * with one 16-bit register, 1/256 degree a step, as the LM75 has it.
 *
 *   thermometer.temperature   read over the bus, by a thread that may sleep
 *
 * The bus takes its time, so the channel has the class "sleep": strobe reads it
 * in a thread of the run, and the row is stamped when its trigger came all the
 * same. Try it without hardware, on the simulated bus of the kernel:
 *
 *   modprobe i2c-stub chip_addr=0x48
 *   modprobe strobe_sample_i2c
 *   echo strobe-thermometer 0x48 >/sys/bus/i2c/devices/i2c-N/new_device
 *   strobe record --event timer:10Hz --read thermometer.temperature,clock.waited --rows 10 -o -
 */
#include <linux/i2c.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "provider.h"

#define TEMPERATURE	0x00
#define STEP		0x3F70000000000000ULL	/* 1.0 / 256 */

/**
 * struct thermometer - one of them.
 * @client: its place on the bus.
 * @device: as strobe knows it.
 * @channel: its only channel.
 */
struct thermometer {
	struct i2c_client	*client;
	struct strobe_device	device;
	struct strobe_channel	channel;
};

/* In the run's thread: it may sleep until the bus is free and has answered. */
static int temperature_read(struct strobe_channel *channel, u64 *value)
{
	struct thermometer *thermometer = container_of(channel, struct thermometer, channel);
	int word = i2c_smbus_read_word_swapped(thermometer->client, TEMPERATURE);

	if (word < 0)
		return word;
	*value = (s64)(s16)word;
	return 0;
}

static const struct strobe_channel_ops temperature_ops = { .read = temperature_read };

static int thermometer_probe(struct i2c_client *client)
{
	struct thermometer *thermometer;

	if (!i2c_check_functionality(client->adapter, I2C_FUNC_SMBUS_READ_WORD_DATA))
		return -EOPNOTSUPP;
	thermometer = devm_kzalloc(&client->dev, sizeof(*thermometer), GFP_KERNEL);
	if (!thermometer)
		return -ENOMEM;
	thermometer->client = client;
	thermometer->channel = (struct strobe_channel) {
		.name		= "temperature",
		.unit		= "degC",
		.scale		= STEP,
		.type		= STROBE_TYPE_S64,
		.bits		= 16,
		.cost_class	= STROBE_CLASS_SLEEP,
		.cost_ns	= 300 * NSEC_PER_USEC,
		.ops		= &temperature_ops,
	};
	thermometer->device = (struct strobe_device) {
		.name		= "thermometer",
		.text		= "thermometer on I2C",
		.parent		= &client->dev,
		.channels	= &thermometer->channel,
		.channel_count	= 1,
	};
	i2c_set_clientdata(client, thermometer);
	return strobe_device_register(&thermometer->device);
}

/* Runs that use it end here; after that nobody reads any more. */
static void thermometer_remove(struct i2c_client *client)
{
	struct thermometer *thermometer = i2c_get_clientdata(client);

	strobe_device_unregister(&thermometer->device);
}

static const struct i2c_device_id thermometer_ids[] = {
	{ "strobe-thermometer" },
	{ }
};
MODULE_DEVICE_TABLE(i2c, thermometer_ids);

static struct i2c_driver thermometer_driver = {
	.driver		= { .name = "strobe-thermometer" },
	.probe		= thermometer_probe,
	.remove		= thermometer_remove,
	.id_table	= thermometer_ids,
};
module_i2c_driver(thermometer_driver);

MODULE_DESCRIPTION("Sample provider of strobe: a thermometer on I2C");
MODULE_LICENSE("GPL");
