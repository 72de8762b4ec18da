/* The validator of a collection: which documents may be stored. Filter, level and action are in the collection's definition. */
#ifndef OV_VALIDATE_H
#define OV_VALIDATE_H

#include "server/write/change.h"

/* May the change be? A removal always; under the level "moderate" also what was invalid before. Under the action "warn" it is logged and may be.
 * 121, with errInfo in w->arena: which document, and which conditions it fails. */
OV_MUST_CHECK int validate_change(struct writer *w, const struct change *ch, struct err *err);

/* Why `doc` fails `filter`, a filter that match_parse takes: appends the fields operatorName, specifiedAs, reason … to the open document.
 * Conditions that fail are found by trying each alone: this is for errors, not for the way of a write. `a` is scratch. */
void validate_explain(struct arena *a, const uint8_t *filter, const uint8_t *doc, struct buf *out);

#endif
