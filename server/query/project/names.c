/* Names of expressions: so that one that is not there yet is told from one that nobody knows. */
#include "server/query/project/parse_private.h"

#include <stdlib.h>

/* clang-format off */
static const char *const names[] = { /* sorted by bytes */
    "$abs", "$acos", "$acosh", "$add", "$allElementsTrue", "$and", "$anyElementTrue", "$arrayElemAt",
    "$arrayToObject", "$asin", "$asinh", "$atan", "$atan2", "$atanh", "$avg", "$binarySize", "$bitAnd", "$bitNot",
    "$bitOr", "$bitXor", "$bsonSize", "$ceil", "$cmp", "$concat", "$concatArrays", "$cond", "$const", "$convert",
    "$cos", "$cosh", "$dateAdd", "$dateDiff", "$dateFromParts", "$dateFromString", "$dateSubtract", "$dateToParts",
    "$dateToString", "$dateTrunc", "$dayOfMonth", "$dayOfWeek", "$dayOfYear", "$degreesToRadians", "$divide", "$eq",
    "$exp", "$filter", "$first", "$firstN", "$floor", "$function", "$getField", "$gt", "$gte", "$hour", "$ifNull",
    "$in", "$indexOfArray", "$indexOfBytes", "$indexOfCP", "$isArray", "$isNumber", "$isoDayOfWeek", "$isoWeek",
    "$isoWeekYear", "$last", "$lastN", "$let", "$literal", "$ln", "$log", "$log10", "$lt", "$lte", "$ltrim", "$map",
    "$max", "$maxN", "$median", "$mergeObjects", "$meta", "$millisecond", "$min", "$minN", "$minute", "$mod",
    "$month", "$multiply", "$ne", "$not", "$objectToArray", "$or", "$percentile", "$pow", "$radiansToDegrees",
    "$rand", "$range", "$reduce", "$regexFind", "$regexFindAll", "$regexMatch", "$replaceAll", "$replaceOne",
    "$reverseArray", "$round", "$rtrim", "$second", "$setDifference", "$setEquals", "$setField", "$setIntersection",
    "$setIsSubset", "$setUnion", "$sigmoid", "$sin", "$sinh", "$size", "$slice", "$sortArray", "$split", "$sqrt",
    "$stdDevPop", "$stdDevSamp", "$strLenBytes", "$strLenCP", "$strcasecmp", "$substr", "$substrBytes", "$substrCP",
    "$subtract", "$sum", "$switch", "$tan", "$tanh", "$toBool", "$toDate", "$toDecimal", "$toDouble",
    "$toHashedIndexKey", "$toInt", "$toLong", "$toLower", "$toObjectId", "$toString", "$toUUID", "$toUpper", "$trim",
    "$trunc", "$tsIncrement", "$tsSecond", "$type", "$unsetField", "$week", "$year", "$zip",
};
/* clang-format on */

static int compare(const void *name, const void *entry)
{
    return strcmp(name, *(const char *const *)entry);
}

bool project_is_expression(const char *name)
{
    return bsearch(name, names, OV_LEN(names), sizeof(names[0]), compare) != NULL;
}
