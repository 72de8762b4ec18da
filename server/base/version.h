/* Our own version: in the log, in buildInfo, in packages. What drivers see as the server's version is another matter. */
#ifndef OV_VERSION_H
#define OV_VERSION_H

#define OV_VERSION "0.1.0"

#endif
