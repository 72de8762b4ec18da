/* The table of settings, and how a row takes a text. For the folder: server/conf/config.h is what others use. */
#ifndef OV_SETTINGS_PRIVATE_H
#define OV_SETTINGS_PRIVATE_H

#include "server/conf/config.h"

enum setting_type {
    SETTING_INT,
    SETTING_DOUBLE,
    SETTING_BOOL,
    SETTING_STRING,
    SETTING_ENUM,
    SETTING_LIST,
    SETTING_SET
};

struct setting {
    const char *key;  /* in files, with dots */
    const char *flag; /* on the command line, without the dashes; NULL: none */
    enum setting_type type;
    size_t at;           /* of the field in struct config */
    double min, max;     /* of numbers */
    const char *choices; /* ENUM and SET: the names of 0, 1, … with commas */
    const char *unit;    /* or NULL */
    const char *dflt;    /* as text; NULL: not set */
    const char *help;
};
extern const struct setting settings[]; /* ends with a NULL key */

const struct setting *setting_by_key(const char *key);
const struct setting *setting_by_flag(const char *flag);
/* Why a key that mongod has is not one of ours, or NULL if it has no such key: "is not available yet" … */
const char *setting_refused_key(const char *key);
bool setting_refused_section(const char *key); /* are keys below it refused by name? */
const char *setting_refused_flag(const char *flag);

/* Puts a text into the field. Errors: ERR_BAD_VALUE; the message is what follows "KEY: ". */
OV_MUST_CHECK int setting_take(struct config *c, const struct setting *s, const char *text, struct err *err);
/* One of --setParameter and of the section setParameter. Errors as above. */
OV_MUST_CHECK int setting_take_parameter(struct config *c, const char *name, const char *text, struct err *err);
/* Keeps what was given, for getCmdLineOpts: the last of a key wins. */
void setting_given(struct config *c, const char *key, const char *value, char type);

/* Reads a file's text over *c. `section` of errors is in the message. */
OV_MUST_CHECK int config_read_yaml(struct config *c, const char *name, const char *text, size_t n, struct err *err);

#endif
