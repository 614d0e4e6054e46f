// SPDX-License-Identifier: GPL-2.0-only
/*
 * An SPI bus for guests, which have none, with one chip: /dev/spidev7.0.
 *
 * The first byte of a transfer is a command: bit 7 reads, bits 6 to 0 are the
 * number of a register. After the "dummy" bytes of a read, each byte is that of
 * the next register. Registers 0x40 to 0x5f are in four pages, of which register
 * 0x7f selects one. The chip understands one mode only; in another one it hears
 * nothing, and all that comes back is ones.
 *
 * /sys/devices/platform/lab_spi/registers has what the chip has: its 128
 * registers, then the pages, of 32 bytes each; "speed" is the clock of the last
 * transfer, in Hz, and "transfers" counts them.
 */
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/spi/spi.h>
#include <linux/version.h>

#define NAME		"lab_spi"
#define BUS		7
#define READS		BIT(7)
#define REGISTERS	0x80
#define PAGE		0x7f
#define PAGED		0x40
#define PAGE_BYTES	0x20
#define PAGES		4

static unsigned int mode;
module_param(mode, uint, 0444);
MODULE_PARM_DESC(mode, "polarity and phase that the chip understands, 0 to 3 (default 0)");

static unsigned int dummy;
module_param(dummy, uint, 0444);
MODULE_PARM_DESC(dummy, "bytes from the command to the first value of a read (default 0)");

struct lab_spi {
	/* Transfers and sysfs. */
	struct mutex lock;
	u8 registers[REGISTERS + PAGES * PAGE_BYTES];
	/* Of the transfer that goes on. */
	unsigned int position;
	bool reads;
	u8 number;
	/* Of the last transfer. */
	u32 speed;
	u64 transfers;
};

static struct platform_device *device;

static u8 *cell(struct lab_spi *chip)
{
	unsigned int number = chip->number % REGISTERS;

	if (number < PAGED || number >= PAGED + PAGE_BYTES)
		return &chip->registers[number];
	number += REGISTERS - PAGED + chip->registers[PAGE] % PAGES * PAGE_BYTES;
	return &chip->registers[number];
}

static u8 exchange(struct lab_spi *chip, u8 out)
{
	unsigned int position = chip->position++;
	u8 in = 0xff;

	if (!position) {
		chip->reads = out & READS;
		chip->number = out & ~READS;
	} else if (!chip->reads) {
		*cell(chip) = out;
		chip->number++;
	} else if (position > dummy) {
		in = *cell(chip);
		chip->number++;
	}
	return in;
}

static int transfer_message(struct spi_controller *host, struct spi_message *message)
{
	struct lab_spi *chip = spi_controller_get_devdata(host);
	bool hears = (message->spi->mode & SPI_MODE_X_MASK) == mode;
	struct spi_transfer *transfer;

	scoped_guard(mutex, &chip->lock) {
		chip->position = 0;
		chip->transfers++;
		list_for_each_entry(transfer, &message->transfers, transfer_list) {
			const u8 *out = transfer->tx_buf;
			u8 *in = transfer->rx_buf;
			unsigned int i;

			chip->speed = transfer->speed_hz;
			for (i = 0; i < transfer->len; i++) {
				u8 came = hears ? exchange(chip, out ? out[i] : 0) : 0xff;

				if (in)
					in[i] = came;
			}
			message->actual_length += transfer->len;
		}
	}
	message->status = 0;
	spi_finalize_current_message(host);
	return 0;
}

/* Newer kernels only look at an attribute. */
#if KERNEL_VERSION(6, 17, 0) > LINUX_VERSION_CODE
#define LAB_CONST
#else
#define LAB_CONST const
#endif

static ssize_t registers_read(struct file *file, struct kobject *kobject,
			      LAB_CONST struct bin_attribute *attribute, char *buffer,
			      loff_t at, size_t count)
{
	struct lab_spi *chip = dev_get_drvdata(kobj_to_dev(kobject));

	guard(mutex)(&chip->lock);
	memcpy(buffer, chip->registers + at, count);
	return count;
}

static ssize_t registers_write(struct file *file, struct kobject *kobject,
			       LAB_CONST struct bin_attribute *attribute, char *buffer,
			       loff_t at, size_t count)
{
	struct lab_spi *chip = dev_get_drvdata(kobj_to_dev(kobject));

	guard(mutex)(&chip->lock);
	memcpy(chip->registers + at, buffer, count);
	return count;
}
static BIN_ATTR_RW(registers, sizeof_field(struct lab_spi, registers));

static ssize_t speed_show(struct device *dev, struct device_attribute *attribute, char *buffer)
{
	struct lab_spi *chip = dev_get_drvdata(dev);

	return sysfs_emit(buffer, "%u\n", READ_ONCE(chip->speed));
}
static DEVICE_ATTR_RO(speed);

static ssize_t transfers_show(struct device *dev, struct device_attribute *attribute, char *buffer)
{
	struct lab_spi *chip = dev_get_drvdata(dev);

	return sysfs_emit(buffer, "%llu\n", READ_ONCE(chip->transfers));
}
static DEVICE_ATTR_RO(transfers);

static struct attribute *attributes[] = {
	&dev_attr_speed.attr,
	&dev_attr_transfers.attr,
	NULL
};

static LAB_CONST struct bin_attribute *bin_attributes[] = {
	&bin_attr_registers,
	NULL
};

static const struct attribute_group group = {
	.attrs		= attributes,
	.bin_attrs	= bin_attributes,
};

static const struct attribute_group *groups[] = {
	&group,
	NULL
};

static int probe(struct platform_device *pdev)
{
	/* A name of the driver spidev's own list: a chip is bound to it by that alone. */
	struct spi_board_info info = { .modalias = "ltc2488", .max_speed_hz = 10000000 };
	struct spi_controller *host;
	struct lab_spi *chip;
	int error;

	host = devm_spi_alloc_host(&pdev->dev, sizeof(*chip));
	if (!host)
		return -ENOMEM;
	chip = spi_controller_get_devdata(host);
	mutex_init(&chip->lock);
	platform_set_drvdata(pdev, chip);
	host->bus_num = BUS;
	host->num_chipselect = 1;
	host->mode_bits = SPI_MODE_X_MASK;
	host->bits_per_word_mask = SPI_BPW_MASK(8);
	host->transfer_one_message = transfer_message;
	error = devm_spi_register_controller(&pdev->dev, host);
	if (error)
		return error;
	return spi_new_device(host, &info) ? 0 : -ENODEV;
}

static struct platform_driver driver = {
	.driver	= { .name = NAME, .dev_groups = groups },
	.probe	= probe,
};

static int __init lab_spi_init(void)
{
	int error = platform_driver_register(&driver);

	if (error)
		return error;
	device = platform_device_register_simple(NAME, PLATFORM_DEVID_NONE, NULL, 0);
	if (!IS_ERR(device))
		return 0;
	platform_driver_unregister(&driver);
	return PTR_ERR(device);
}
module_init(lab_spi_init);

static void __exit lab_spi_exit(void)
{
	platform_device_unregister(device);
	platform_driver_unregister(&driver);
}
module_exit(lab_spi_exit);

MODULE_DESCRIPTION("strobe: an SPI bus without hardware, with a chip");
MODULE_LICENSE("GPL");
