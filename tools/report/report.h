/*
 * tools/report/report.h - what an event log tells, and the ways in which it is printed.
 *
 * A report is made of the slots of a log in one pass, in time and memory linear in their size. It
 * holds what the log says of each module, function, cache and so on. Tables give access to it: each
 * has columns and rows of cells, so that the page, the text and the JSON say the same.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_REPORT_REPORT_H
#define TOOLS_REPORT_REPORT_H

#include "tools/cli/command.h"
#include "tools/cli/json.h"
#include "tools/cli/keyed.h"
#include "tools/report/log.h"

enum { ACTION_COUNT = 4, REPORT_NOTES_MAX = 16 };

#define NO_LINK UINT32_MAX

/* Texts are numbers of strings: 0 for none. Times are nanoseconds since the start of the log. */

struct report_module {
    uint64_t number; /* the key */
    uint64_t address;
    uint64_t code_bytes;
    uint64_t compilation_ns; /* 0 if unknown */
    uint64_t loaded;
    uint64_t retired;
    uint64_t function_count;
    uint32_t name;
    bool is_loaded; /* whether the log has the event */
    bool is_retired;
};

struct report_function {
    uint64_t name;   /* key */
    uint64_t module; /* key: 0 if there is a name */
    uint64_t exit_count;
    uint64_t deopt_count;
    uint64_t actions[ACTION_COUNT];
    uint64_t load_count; /* modules that had the function */
    uint64_t code_bytes; /* in all of them */
    uint64_t version_count;
    uint64_t compilation_count;
    uint64_t compilation_ns;
    uint64_t invalidated_count;
    uint64_t cache_changes;
    uint32_t top_deopt; /* number of its most frequent deopt plus 1, or 0 */
};

/* A record at which exits were taken. */
struct report_exit {
    uint64_t function; /* key */
    uint64_t id;       /* key */
    uint64_t address;  /* of the last one */
    uint64_t position; /* UINT64_MAX if unknown */
    uint64_t exit_count;
    uint64_t deopt_count;
    uint32_t source; /* where the host's source has the position */
    uint64_t first;
    uint64_t last;
};

/* The deopts at a record, of one interpreter position, for one reason. */
struct report_deopt {
    uint64_t function; /* key */
    uint64_t id;       /* key */
    uint64_t position; /* key: UINT64_MAX if unknown */
    uint64_t reason;   /* key */
    uint64_t address;  /* of the last one */
    uint32_t source;   /* where the host's source has the position */
    uint64_t count;    /* 0 if no handler has ended */
    uint64_t exit_count;
    uint64_t actions[ACTION_COUNT];
    uint64_t total_ns;
    uint64_t first;
    uint64_t last;
};

struct report_cache {
    uint64_t address; /* key */
    uint64_t id;      /* key */
    uint64_t module;  /* key */
    uint64_t change_count;
    uint64_t key_count; /* changes that added a key */
    uint64_t last;
    uint32_t name;
    uint32_t first_change;
    uint32_t last_change;
};

struct report_change {
    uint64_t time;
    uint64_t key; /* 0 for none */
    uint32_t key_name;
    uint32_t from;
    uint32_t to;
    uint32_t next; /* of the same cache, or NO_LINK */
};

struct report_invalidation {
    uint64_t number;
    uint64_t time;
    uint64_t site_count;
    uint64_t hit_count;
    uint32_t reason;
    uint32_t first_hit;
    uint32_t last_hit;
    bool is_known; /* whether the log has the event itself, not only what it hit */
};

struct report_hit {
    uint64_t time;
    uint64_t module;
    uint64_t address;
    uint32_t name;
    uint32_t next; /* of the same invalidation, or NO_LINK */
};

struct report_compilation {
    uint64_t start;
    uint64_t end;
    uint64_t module;
    uint32_t name;
    uint32_t tier;
    uint32_t thread;
};

struct report_version {
    uint64_t time;
    uint64_t number;
    uint64_t address;
    uint32_t name;
    bool is_compiled;
};

struct report_site {
    uint64_t address; /* key */
    uint64_t id;      /* key */
    uint64_t module;  /* key */
    uint64_t patch_count;
    uint64_t state;
    uint64_t target;
    uint64_t last;
    uint32_t name;
};

struct report_grace {
    uint64_t begun;
    uint64_t ended;
    uint64_t freed;
    uint32_t thread;
    bool has_begun;
    bool has_ended;
};

struct report_message {
    uint64_t time;
    uint64_t a;
    uint64_t b;
    uint32_t text;
    uint32_t thread;
};

/* The code of a function, by which sites are named. */
struct report_code {
    uint64_t module;
    uint64_t address;
    uint64_t bytes;
    uint32_t name;
};

struct report {
    const char *path;
    struct cairn_log_header header;
    char cairn_version[17]; /* of the header, with a zero byte */
    char architecture[17];  /* likewise */
    struct log_slots slots;
    struct cairn_allocator allocator; /* of `text_set` */
    bool is_damaged;                  /* whether something that was written cannot be read */
    bool lacks_memory;
    char notes[REPORT_NOTES_MAX][LOG_MESSAGE_BYTES]; /* what is missing, a sentence each */
    unsigned note_count;

    uint64_t counts[LOG_KIND_COUNT]; /* events by kind */
    uint64_t event_count;
    uint64_t unknown_count;        /* slots of unknown kinds */
    uint64_t invalid_string_count; /* slots */
    uint64_t lost_text_count;      /* references to strings that are not there */
    uint64_t lost_count;           /* events that found the log full */
    uint64_t early_count;          /* events before the start */
    uint64_t end;                  /* time of the last event, or of the log's end */
    uint64_t last_event;           /* time of the last event */

    struct list texts;        /* bytes: each string ends with a zero byte */
    struct list text_offsets; /* size_t: of string 1 and so on */
    struct hash_set text_set;
    uint32_t *text_of_slot; /* by slot: the string that begins there, or 0 */

    struct keyed_list threads;
    struct keyed_list modules;
    struct keyed_list functions;
    struct keyed_list exits;
    struct keyed_list deopts;
    struct keyed_list caches;
    struct list changes;
    struct list invalidations;
    struct keyed_list open_invalidations;
    struct list hits;
    struct list compilations;
    struct list versions;
    struct keyed_list sites;
    struct list graces;
    struct keyed_list open_graces;
    struct list messages;
    struct list code; /* sorted by module and address */
    struct list code_by_address;
};

/* Makes the report of the header and slots that it has. False, after an error message, if memory
 * runs out. */
bool report_create(struct report *report);
void report_release(struct report *report);

/* Adds a sentence about what is missing. */
void report_note(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns the text, or NULL for 0. */
const char *report_text(const struct report *report, uint32_t text);
/* Returns the time of a clock's value. */
uint64_t report_time(const struct report *report, uint64_t clock);
const struct report_module *report_find_module(const struct report *report, uint64_t number);
/* Returns the name of the function at the address in the module, or 0. */
uint32_t report_function_at(const struct report *report, uint64_t module, uint64_t address);
/* Returns the name of the function that begins at the address, in any module; 0 if no function
 * does, or if functions with different names have begun there, because memory was used again. */
uint32_t report_function_called(const struct report *report, uint64_t address);

/* ---- Totals ---- */

struct report_total {
    const char *name;
    uint64_t count;
};

enum { REPORT_TOTAL_COUNT = 8 };

/* Counts what has happened, for the summaries of the page and of the text. Rows of tables are
 * fewer, because a row can have many events. */
void report_totals(const struct report *report, struct report_total totals[REPORT_TOTAL_COUNT]);

/* ---- Tables ---- */

enum cell_kind {
    CELL_UNKNOWN,
    CELL_TEXT,
    CELL_COUNT,
    CELL_TIME,
    CELL_DURATION,
    CELL_ADDRESS,
    CELL_STATES, /* of a cache; `number` is the first change */
    CELL_KEYS,   /* of a cache, likewise */
    CELL_HITS    /* of an invalidation; `number` is the first hit */
};

enum { CELL_BYTES = 112 };

struct cell {
    enum cell_kind kind;
    uint64_t number;
    const char *text;       /* if it is a text; if NULL, it is in `space` */
    char space[CELL_BYTES]; /* a text of our own */
};

enum { COLUMNS_MAX = 12 };

struct report_table {
    const char *name; /* key in JSON and in links */
    const char *title;
    const char *caption;
    struct {
        const char *key;
        const char *title;
    } columns[COLUMNS_MAX]; /* up to the first without a key */
    size_t list;            /* offset in struct report of the list that has an item for each row */
    size_t item_bytes;
    void (*row)(const struct report *report, const void *item, struct cell *cells);
    /* Rows are in descending order of this; in the order of the log if it is NULL. */
    uint64_t (*rank)(const void *item);
    bool is_in_text; /* whether the text summary has it */
};

enum { REPORT_TABLE_COUNT = 10 };
extern const struct report_table report_tables[REPORT_TABLE_COUNT];

unsigned table_column_count(const struct report_table *table);
size_t table_row_count(const struct report *report, const struct report_table *table);
void table_row(const struct report *report, const struct report_table *table, size_t row,
               struct cell cells[COLUMNS_MAX]);
/* Returns the numbers of the rows in the table's order, to be freed; NULL without memory. */
uint32_t *table_order(const struct report *report, const struct report_table *table);

/* An item of a cell that is a list. */
struct cell_item {
    const char *name; /* a text of the log, or NULL */
    char text[CELL_BYTES];
    uint64_t time;
    uint64_t module;  /* of a hit */
    uint64_t address; /* of a hit */
};

bool cell_is_list(const struct cell *cell);
/* Takes the item at `*at`, which is first the cell's number, and moves `*at` to the next one. False
 * at the end. */
bool cell_next(const struct report *report, const struct cell *cell, uint64_t *at,
               struct cell_item *item);
/* Returns the text between items. */
const char *cell_separator(const struct cell *cell);
/* Formats a cell that is neither a list nor a text of the log. */
void cell_format(const struct cell *cell, char text[CELL_BYTES]);

void format_duration(uint64_t ns, char *text, size_t size);
void format_date(uint64_t ns, char *text, size_t size);

/* ---- Output: at most `limit` rows of each table ---- */

bool write_report_page(struct output *output, const struct report *report, size_t limit);
bool write_report_text(struct output *output, const struct report *report, size_t limit);
bool write_report_json(struct json *json, const struct report *report, size_t limit);

/* Draws the timeline: SVG inside the page. */
bool write_report_timeline(struct output *output, const struct report *report);

/* Writes the page's style and its script. */
void write_report_style(struct output *output);
void write_report_script(struct output *output);

#endif
