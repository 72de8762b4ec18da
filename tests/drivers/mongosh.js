// mongosh: create, index, query, update, delete, and the helpers that people type.
const shop = db.getSiblingDB('shop');
shop.dropDatabase();
assert.deepEqual(shop.items.insertMany([{ _id: 1, n: 1 }, { _id: 2, n: 2 }, { _id: 3, n: 3 }]).insertedIds, { 0: 1, 1: 2, 2: 3 });
assert.equal(shop.items.createIndex({ n: 1 }, { unique: true }), 'n_1');
let code = 0;
try { shop.items.insertOne({ n: 2 }); } catch (e) { code = e.code; }
assert.equal(code, 11000);
assert.deepEqual(shop.items.find({ n: { $gte: 2 } }).sort({ n: -1 }).toArray(), [{ _id: 3, n: 3 }, { _id: 2, n: 2 }]);
assert.equal(shop.items.updateOne({ _id: 1 }, { $inc: { n: 10 } }).modifiedCount, 1);
assert.deepEqual(shop.items.findOne({ n: 11 }), { _id: 1, n: 11 });
assert.equal(shop.items.countDocuments(), 3);
assert.equal(shop.items.updateOne({ _id: 9 }, { $set: { n: 9 } }, { upsert: true }).upsertedCount, 1);
assert.deepEqual(shop.items.findOneAndUpdate({ _id: 9 }, { $set: { n: 90 } }, { returnDocument: 'after' }), { _id: 9, n: 90 });
assert.equal(shop.items.deleteMany({ n: { $gt: 5 } }).deletedCount, 2);
assert.deepEqual(shop.getCollectionNames(), ['items']);
assert.deepEqual(shop.items.getIndexes().map((i) => i.name), ['_id_', 'n_1']);
assert.equal(shop.items.find({ n: 2 }).explain().queryPlanner.namespace, 'shop.items');
assert.equal(String(shop.stats().collections), '1');
assert.equal(String(shop.items.stats().count), '2');
assert(db.adminCommand({ listDatabases: 1 }).databases.some((d) => d.name === 'shop'));
assert(/^8\.0\./.test(db.version()));
assert.equal(db.hello().isWritablePrimary, true);
assert(db.serverStatus().uptime >= 0);
assert.equal(shop.items.drop(), true);
assert.equal(shop.dropDatabase().ok, 1);
print('mongosh: all right');
