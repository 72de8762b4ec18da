/* The functions behind the rows of table.c. */
#ifndef OV_UPDATE_OPERATORS_H
#define OV_UPDATE_OPERATORS_H

#include "server/query/update/update_private.h"

#define UPDATE_PARSE(name) int name(struct parse *p, struct leaf *l, struct err *err)
#define UPDATE_APPLY(name) int name(struct apply *ap, const struct leaf *l, const struct target *t)
#define UPDATE_IDLE(name)  bool name(const struct apply *ap, const struct leaf *l)

UPDATE_PARSE(any_parse);
UPDATE_PARSE(inc_parse);
UPDATE_PARSE(mul_parse);
UPDATE_PARSE(bit_parse);
UPDATE_PARSE(current_date_parse);
UPDATE_PARSE(rename_parse);
UPDATE_PARSE(push_parse);
UPDATE_PARSE(add_to_set_parse);
UPDATE_PARSE(pull_parse);
UPDATE_PARSE(pull_all_parse);
UPDATE_PARSE(pop_parse);

UPDATE_APPLY(inc_apply);
UPDATE_APPLY(mul_apply);
UPDATE_APPLY(min_apply);
UPDATE_APPLY(max_apply);
UPDATE_APPLY(bit_apply);
UPDATE_APPLY(set_apply);
UPDATE_APPLY(unset_apply);
UPDATE_APPLY(current_date_apply);
UPDATE_APPLY(rename_to_apply);
UPDATE_APPLY(push_apply);
UPDATE_APPLY(add_to_set_apply);
UPDATE_APPLY(pull_apply);
UPDATE_APPLY(pull_all_apply);
UPDATE_APPLY(pop_apply);

UPDATE_IDLE(set_on_insert_idle);
UPDATE_IDLE(rename_to_idle);

#endif
