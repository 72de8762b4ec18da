/* Our own version, and the one that drivers see. */
#ifndef OV_VERSION_H
#define OV_VERSION_H

#define OV_VERSION "0.1.0" /* in the log, in buildInfo, in packages */

/* What clients take us for: they choose commands by it. Raised when everything that a newer version's drivers send by themselves is there. */
#define OV_COMPAT_VERSION "8.0.15"
#define OV_COMPAT_VERSION_ARRAY \
    {                           \
        8, 0, 15, 0             \
    }
#define OV_COMPAT_FCV              "8.0"
#define OV_COMPAT_MAX_WIRE_VERSION 25

#endif
