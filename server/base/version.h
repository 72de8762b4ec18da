/* Our own version, and the one that drivers see. */
#ifndef OV_VERSION_H
#define OV_VERSION_H

#define OV_VERSION "0.1.0" /* in the log, in buildInfo, in packages */

/* What clients take us for: they choose commands by it. Raised when everything that a newer version's drivers send by themselves is there. */
#define OV_COMPAT_VERSION          "7.0.14"
#define OV_COMPAT_VERSION_ARRAY    {7, 0, 14, 0}
#define OV_COMPAT_FCV              "7.0"
#define OV_COMPAT_MAX_WIRE_VERSION 21

#endif
