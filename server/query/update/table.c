/* The update operators: one row and one function each. */
#include "server/query/update/operators.h"

static const struct update_op operators[] = {
    /* name, makes the field, strict about the path, parse, apply, idle */
    {"$addToSet", true, false, add_to_set_parse, add_to_set_apply, NULL},
    {"$bit", true, false, bit_parse, bit_apply, NULL},
    {"$currentDate", true, false, current_date_parse, current_date_apply, NULL},
    {"$inc", true, false, inc_parse, inc_apply, NULL},
    {"$max", true, false, any_parse, max_apply, NULL},
    {"$min", true, false, any_parse, min_apply, NULL},
    {"$mul", true, false, mul_parse, mul_apply, NULL},
    {"$pop", false, true, pop_parse, pop_apply, NULL},
    {"$pull", false, true, pull_parse, pull_apply, NULL},
    {"$pullAll", false, true, pull_all_parse, pull_all_apply, NULL},
    {"$push", true, false, push_parse, push_apply, NULL},
    {"$rename", false, false, rename_parse, unset_apply, NULL}, /* of the source; the target is a leaf of its own */
    {"$set", true, false, any_parse, set_apply, NULL},
    {"$setOnInsert", true, false, any_parse, set_apply, set_on_insert_idle},
    {"$unset", false, false, any_parse, unset_apply, NULL},
};

const struct update_op *update_op_find(const char *name)
{
    for (size_t i = 0; i < OV_LEN(operators); i++)
        if (strcmp(operators[i].name, name) == 0)
            return &operators[i];
    return NULL;
}
