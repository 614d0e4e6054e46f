// SPDX-License-Identifier: MIT OR Apache-2.0
// Lists what is here, records a run with libstrobe, and reads the recording: record FILE.arrows
//
//	c++ -std=c++17 record.cpp $(pkg-config --cflags --libs strobe) -o record
#include <cstdint>
#include <iostream>
#include <libstrobe.h>
#include <memory>
#include <stdexcept>
#include <vector>

// A handle that frees itself.
template <typename T, void (*Free)(T *)> struct Freed {
	void operator()(T *handle) const { Free(handle); }
};
using Catalogue = std::unique_ptr<strobe_catalogue, Freed<strobe_catalogue, strobe_catalogue_free>>;
using Run = std::unique_ptr<strobe_run, Freed<strobe_run, strobe_run_free>>;
using Rows = std::unique_ptr<strobe_rows, Freed<strobe_rows, strobe_rows_free>>;
using Block = std::unique_ptr<strobe_block, Freed<strobe_block, strobe_block_free>>;

// What a call has answered, unless it has failed.
template <typename T> T *made(T *handle)
{
	if (!handle)
		throw std::runtime_error(strobe_error());
	return handle;
}

static int done(int answer)
{
	if (answer < 0)
		throw std::runtime_error(strobe_error());
	return answer;
}

static void record(const char *file)
{
	Catalogue here(made(strobe_catalogue_new()));
	for (std::size_t i = 0; i < strobe_catalogue_count(here.get(), STROBE_CHANNELS); i++)
		std::cout << strobe_catalogue_name(here.get(), STROBE_CHANNELS, i) << ": "
			  << strobe_catalogue_description(here.get(), STROBE_CHANNELS, i) << "\n";

	Run run(made(strobe_run_of_text("event = 'timer:1kHz'\nread = ['sim.counter']\nrows = 200")));
	strobe_account account{};
	account.size = sizeof(account);
	done(strobe_run_record(run.get(), &file, 1, 0, &account));
	if (account.triggers != account.rows + account.missed + account.skipped)
		throw std::runtime_error("the account does not add up");

	Rows rows(made(strobe_rows_of_file(file)));
	std::uint64_t read = 0;
	for (;;) {
		strobe_block *next = nullptr;
		int found = done(strobe_rows_next(rows.get(), 1000, &next));
		if (found == STROBE_END)
			break;
		if (found == STROBE_NOTHING)
			continue;
		Block block(made(next));
		std::vector<std::uint64_t> words(strobe_block_rows(block.get()));
		done(strobe_block_raw(block.get(), 0, words.data(), words.size()) < 0 ? -1 : 0);
		read += words.size();
	}
	std::cout << account.triggers << " triggers, " << account.rows << " rows, " << account.missed << " missed, "
		  << account.lost << " lost, " << read << " in the recording\n";
	if (read + account.lost != account.rows)
		throw std::runtime_error("the recording does not have what its account says");
}

int main(int argc, char **argv)
{
	try {
		record(argc > 1 ? argv[1] : "scan.arrows");
	} catch (const std::exception &error) {
		std::cerr << error.what() << "\n";
		return 1;
	}
}
