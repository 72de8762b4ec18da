/* $jsonSchema. */
#include "tests/unit/match/table.h"

#define S(schema) "{~jsonSchema: " schema "}"
#define X(schema) S("{properties: {x: " schema "}}")

START_TEST(objects)
{
    CHECK_ROWS({S("{}"), "{a: 1}", true}, {S("{required: ['a', 'b']}"), "{b: null, a: 1}", true},
               {S("{required: ['a', 'b']}"), "{a: 1, c: 2}", false}, {S("{required: ['']}"), "{'': 1}", true},
               {S("{properties: {a: {bsonType: 'string'}}}"), "{a: 'x'}", true},
               {S("{properties: {a: {bsonType: 'string'}}}"), "{a: 1}", false},
               {S("{properties: {a: {bsonType: 'string'}}}"), "{b: 1}", true},
               {S("{properties: {a: {properties: {b: {type: 'number'}}}}}"), "{a: {b: 'x'}}", false},
               {S("{properties: {a: {properties: {b: {type: 'number'}}}}}"), "{a: 'x'}", true},
               {S("{properties: {a: {required: ['b']}}}"), "{a: {c: 1}}", false},
               {S("{properties: {a: {required: ['b']}}}"), "{a: [{c: 1}]}", true}, /* arrays are not walked into */
               {S("{properties: {a: {}}, additionalProperties: false}"), "{a: 1}", true},
               {S("{properties: {a: {}}, additionalProperties: false}"), "{a: 1, b: 1}", false},
               {S("{additionalProperties: {type: 'number'}}"), "{a: 1, b: 'x'}", false},
               {S("{patternProperties: {'^n': {type: 'number'}}}"), "{n1: 1, m: 'x'}", true},
               {S("{patternProperties: {'^n': {type: 'number'}}}"), "{n1: 'x'}", false},
               {S("{patternProperties: {'^n': {}}, additionalProperties: false}"), "{n1: 'x'}", true},
               {S("{patternProperties: {'^n': {}}, additionalProperties: false}"), "{m1: 'x'}", false},
               {S("{patternProperties: {'1$': {type: 'number'}}, properties: {a1: {minimum: 5}}}"), "{a1: 4}", false},
               {S("{minProperties: 2, maxProperties: 3}"), "{a: 1}", false},
               {S("{minProperties: 2, maxProperties: 3}"), "{a: 1, b: 2}", true},
               {S("{minProperties: 2, maxProperties: 3}"), "{a: 1, b: 2, c: 3, d: 4}", false},
               {S("{dependencies: {a: ['b', 'c']}}"), "{a: 1, b: 2}", false},
               {S("{dependencies: {a: ['b', 'c']}}"), "{a: 1, b: 2, c: 3}", true},
               {S("{dependencies: {a: ['b', 'c']}}"), "{d: 1}", true},
               {S("{dependencies: {a: {required: ['d']}}}"), "{a: 1}", false},
               {S("{dependencies: {a: {required: ['d']}}}"), "{a: 1, d: 1}", true});
}
END_TEST

START_TEST(scalars)
{
    CHECK_ROWS({X("{minimum: 5}"), "{x: 5}", true}, {X("{minimum: 5}"), "{x: 4.9}", false},
               {X("{minimum: 5, exclusiveMinimum: true}"), "{x: 5}", false}, {X("{minimum: 5}"), "{x: 'a'}", true},
               {X("{maximum: 5}"), "{x: 6}", false}, {X("{maximum: 5, exclusiveMaximum: true}"), "{x: 5}", false},
               {X("{maximum: 5, exclusiveMaximum: false}"), "{x: 5}", true},
               {X("{maximum: 5}"), "{x: {'$numberDouble': 'NaN'}}", false}, {X("{multipleOf: 3}"), "{x: 9}", true},
               {X("{multipleOf: 3}"), "{x: 10}", false}, {X("{multipleOf: 3}"), "{x: -9}", true},
               {X("{multipleOf: 3}"), "{x: 0}", true}, {X("{multipleOf: 3}"), "{x: 'a'}", true},
               {X("{multipleOf: 0.1}"), "{x: 0.3}", true}, {X("{multipleOf: 0.1}"), "{x: 0.35}", false},
               {X("{multipleOf: 10}"), "{x: {'$numberDecimal': '1E+6000'}}", true},
               {X("{multipleOf: 7}"), "{x: {'$numberDecimal': '1E+6000'}}", false},
               {X("{multipleOf: {'$numberDecimal': '1E+6000'}}"), "{x: 5}", false},
               {X("{multipleOf: {'$numberLong': '9223372036854775807'}}"),
                "{x: {'$numberLong': '9223372036854775807'}}", true},
               {X("{multipleOf: 3}"), "{x: {'$numberDouble': 'NaN'}}", false},
               {X("{multipleOf: 3}"), "{x: {'$numberDouble': 'Infinity'}}", false},
               {X("{minLength: 2}"), "{x: '\xc3\xa4'}", false}, {X("{minLength: 2}"), "{x: '\xc3\xa4\xc3\xa4'}", true},
               {X("{maxLength: 1}"), "{x: '\xc3\xa4'}", true}, {X("{maxLength: 0}"), "{x: 7}", true},
               {X("{pattern: '^ab'}"), "{x: 'abc'}", true}, {X("{pattern: '^ab'}"), "{x: 'cab'}", false},
               {X("{pattern: 'b.d'}"), "{x: 'abcde'}", true}, {X("{pattern: '^ab'}"), "{x: 1}", true},
               {X("{bsonType: ['int', 'string']}"), "{x: 1.5}", false}, {X("{bsonType: 'number'}"), "{x: 1.5}", true},
               {X("{type: 'boolean'}"), "{x: true}", true}, {X("{type: ['null', 'object']}"), "{x: 1}", false},
               {S("{bsonType: 'string'}"), "{}", false}, {S("{type: 'object', minimum: 5}"), "{}", true});
}
END_TEST

START_TEST(arrays)
{
    CHECK_ROWS(
        {X("{minItems: 1, maxItems: 2}"), "{x: []}", false}, {X("{minItems: 1, maxItems: 2}"), "{x: [1, 2]}", true},
        {X("{minItems: 1, maxItems: 2}"), "{x: [1, 2, 3]}", false}, {X("{minItems: 1}"), "{x: {}}", true},
        {X("{uniqueItems: true}"), "{x: [1, 2, 1]}", false}, {X("{uniqueItems: true}"), "{x: [0, false, null]}", true},
        {X("{uniqueItems: true}"), "{x: [1, {'$numberDouble': '1'}]}", false},
        {X("{uniqueItems: true}"), "{x: [{a: 1, b: [{c: 1, d: 2}]}, {b: [{d: 2, c: 1}], a: 1}]}", false},
        {X("{uniqueItems: true}"), "{x: [[1, 2], [2, 1]]}", true}, {X("{uniqueItems: false}"), "{x: [1, 1]}", true},
        {X("{items: {type: 'number'}}"), "{x: [1, 2.5]}", true},
        {X("{items: {type: 'number'}}"), "{x: [1, 'a']}", false},
        {X("{items: [{type: 'number'}, {type: 'string'}]}"), "{x: [1, 'a', null]}", true},
        {X("{items: [{type: 'number'}, {type: 'string'}]}"), "{x: ['a']}", false},
        {X("{items: [{}], additionalItems: false}"), "{x: [1, 2]}", false},
        {X("{items: [{}], additionalItems: {type: 'number'}}"), "{x: ['a', 2]}", true},
        {X("{items: [{}], additionalItems: {type: 'number'}}"), "{x: ['a', 'b']}", false},
        {X("{items: {}, additionalItems: false}"), "{x: [1, 2]}", true},
        {X("{additionalItems: false}"), "{x: [1]}", true});
}
END_TEST

START_TEST(any_value)
{
    CHECK_ROWS({X("{enum: [1, 'a', {p: 1, q: 2}]}"), "{x: 'a'}", true},
               {X("{enum: [1, 'a', {p: 1, q: 2}]}"), "{x: 2}", false},
               {X("{enum: [1, 'a', {p: 1, q: 2}]}"), "{x: {q: 2, p: 1}}", true}, {X("{enum: [1]}"), "{x: [1]}", false},
               {S("{enum: [{a: 1}]}"), "{a: 1}", true}, {S("{enum: [1]}"), "{a: 1}", false},
               {X("{allOf: [{minimum: 1}, {maximum: 2}]}"), "{x: 3}", false},
               {X("{anyOf: [{minimum: 5}, {type: 'string'}]}"), "{x: 'a'}", true},
               {X("{anyOf: [{maximum: 1}, {minimum: 5}]}"), "{x: 3}", false},
               {X("{oneOf: [{minimum: 1}, {maximum: 2}]}"), "{x: 0}", true},
               {X("{oneOf: [{minimum: 1}, {maximum: 2}]}"), "{x: 2}", false},
               {X("{not: {type: 'number'}}"), "{x: 1}", false}, {X("{not: {type: 'number'}}"), "{x: 'a'}", true},
               {X("{not: {type: 'number'}}"), "{}", true}, {X("{title: 't', description: 'd'}"), "{x: 1}", true},
               /* beside other conditions, and in $elemMatch */
               {"{a: 1, ~jsonSchema: {required: ['b']}}", "{a: 1}", false},
               {"{~nor: [{~jsonSchema: {required: ['b']}}]}", "{a: 1}", true},
               {"{a: {~elemMatch: {~jsonSchema: {required: ['b']}}}}", "{a: [{c: 1}, {b: 1}]}", true});
}
END_TEST

START_TEST(words_of_the_errors)
{
    CHECK_BAD(
        {"{~jsonSchema: 1}", 14, "$jsonSchema must be an object"},
        {S("{foo: 1}"), 9, "Unknown $jsonSchema keyword: foo"},
        {S("{format: 'x'}"), 9, "$jsonSchema keyword 'format' is not currently supported"},
        {S("{title: 'a', title: 'b'}"), 9, "Duplicate $jsonSchema keyword: title"},
        {S("{type: 'object', bsonType: 'object'}"), 9,
         "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'"},
        {S("{type: 'integer'}"), 9, "$jsonSchema type 'integer' is not currently supported."},
        {S("{type: 'int'}"), 2, "Unknown type name alias: int"},
        {S("{bsonType: 'boolean'}"), 2, "Unknown type name alias: boolean"},
        {S("{bsonType: []}"), 9, "$jsonSchema keyword 'bsonType' must name at least one type"},
        {S("{bsonType: ['int', 'int']}"), 9, "$jsonSchema keyword 'bsonType' has duplicate value: int"},
        {S("{bsonType: 16}"), 14, "$jsonSchema keyword 'bsonType' must be either a string or an array of strings"},
        {S("{required: []}"), 9, "$jsonSchema keyword 'required' cannot be an empty array"},
        {S("{required: ['a', 'b', 'a']}"), 9,
         "$jsonSchema keyword 'required' array cannot contain duplicate values: a"},
        {S("{properties: {a: 1}}"), 14, "Nested schema for $jsonSchema property 'a' must be an object"},
        {S("{minimum: 'x'}"), 14, "$jsonSchema keyword 'minimum' must be a number"},
        {S("{exclusiveMinimum: true}"), 9,
         "$jsonSchema keyword 'minimum' must be a present if exclusiveMinimum is present"},
        {S("{exclusiveMaximum: 1, maximum: 1}"), 14, "$jsonSchema keyword 'exclusiveMaximum' must be a boolean"},
        {S("{multipleOf: 0}"), 9, "$jsonSchema keyword 'multipleOf' must have a positive value"},
        {S("{minLength: -1}"), 9, "Expected a non-negative number in: minLength: -1"},
        {S("{anyOf: []}"), 2, "$jsonSchema keyword 'anyOf' must be a non-empty array"},
        {S("{enum: [{a: 1, b: 1}, {b: 1, a: 1}]}"), 9,
         "$jsonSchema keyword 'enum' array cannot contain duplicate values."},
        {S("{dependencies: {a: []}}"), 9,
         "property 'a' in $jsonSchema keyword 'dependencies' cannot be an empty array"},
        {S("{encrypt: {}}"), 238, "the $jsonSchema keyword 'encrypt' is not implemented"});
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, objects);
    tcase_add_test(tc, scalars);
    tcase_add_test(tc, arrays);
    tcase_add_test(tc, any_value);
    tcase_add_test(tc, words_of_the_errors);
}

TEST_MAIN("match/schema", add_tests)
