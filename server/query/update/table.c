/* The update operators: one row and one function each. */
#include "server/query/update/operators.h"

static const struct update_op operators[] = {
    /* name, makes the field, parse, apply, idle */
    {"$addToSet", true, add_to_set_parse, add_to_set_apply, NULL},
    {"$bit", true, bit_parse, bit_apply, NULL},
    {"$currentDate", true, current_date_parse, current_date_apply, NULL},
    {"$inc", true, inc_parse, inc_apply, NULL},
    {"$max", true, any_parse, max_apply, NULL},
    {"$min", true, any_parse, min_apply, NULL},
    {"$mul", true, mul_parse, mul_apply, NULL},
    {"$pop", false, pop_parse, pop_apply, NULL},
    {"$pull", false, pull_parse, pull_apply, NULL},
    {"$pullAll", false, pull_all_parse, pull_all_apply, NULL},
    {"$push", true, push_parse, push_apply, NULL},
    {"$rename", false, rename_parse, unset_apply, NULL}, /* of the source; the target is a leaf of its own */
    {"$set", true, any_parse, set_apply, NULL},
    {"$setOnInsert", true, any_parse, set_apply, set_on_insert_idle},
    {"$unset", false, any_parse, unset_apply, NULL},
};

const struct update_op *update_op_find(const char *name)
{
    for (size_t i = 0; i < OV_LEN(operators); i++)
        if (strcmp(operators[i].name, name) == 0)
            return &operators[i];
    return NULL;
}
