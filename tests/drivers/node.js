// The Node driver: create, index, query, update, delete. node.js URI
'use strict';
const assert = require('node:assert');
const { MongoClient, ObjectId, Long } = require('mongodb');

async function main(uri, options) {
  const client = new MongoClient(uri, options);
  await client.connect();
  try {
    const posts = client.db('node').collection('posts');
    await posts.createIndex({ tags: 1, date: -1 });
    await posts.createIndex({ slug: 1 }, { unique: true });
    const docs = [...Array(20).keys()].map((i) => ({
      slug: `p${i}`, tags: i % 2 ? ['a', 'b'] : ['b'], date: new Date(2020, 0, 1 + i), votes: 0, voters: [],
    }));
    const made = await posts.insertMany(docs);
    assert.strictEqual(made.insertedCount, 20);
    assert(made.insertedIds[0] instanceof ObjectId);
    await assert.rejects(posts.insertOne({ slug: 'p3' }), (e) => e.code === 11000 && e.keyPattern.slug === 1 && e.keyValue.slug === 'p3');
    const newest = await posts.find({ tags: 'a' }).sort({ date: -1 }).limit(2).toArray();
    assert.deepStrictEqual(newest.map((p) => p.slug), ['p19', 'p17']);
    assert.strictEqual(await posts.countDocuments({ tags: 'a' }), 10);
    const votes = await Promise.all([...Array(50)].map(() =>
      posts.updateOne({ slug: 'p3', voters: { $nin: ['bob'] } }, { $inc: { votes: 1 }, $push: { voters: 'bob' } })));
    assert.strictEqual(votes.reduce((n, r) => n + r.modifiedCount, 0), 1);
    const p3 = await posts.findOne({ slug: 'p3' }, { projection: { _id: 0, votes: 1, voters: 1 } });
    assert.deepStrictEqual(p3, { votes: 1, voters: ['bob'] });
    const up = await posts.updateOne({ slug: 'new' }, { $set: { n: Long.fromString('9007199254740993') } }, { upsert: true });
    assert.strictEqual(up.upsertedCount, 1);
    assert.strictEqual((await posts.findOne({ slug: 'new' }, { promoteLongs: false })).n.toString(), '9007199254740993');
    const gone = await posts.findOneAndDelete({ slug: 'new' });
    assert.strictEqual(gone.slug, 'new');
    assert.strictEqual((await posts.deleteMany({ tags: 'a' })).deletedCount, 10);
    let seen = 0;
    for await (const doc of posts.find({}, { batchSize: 3 })) seen += doc.slug ? 1 : 0;
    assert.strictEqual(seen, 10);
    assert.strictEqual(await posts.estimatedDocumentCount(), 10);
    assert.deepStrictEqual((await posts.indexes()).map((i) => i.name), ['_id_', 'tags_1_date_-1', 'slug_1']);
    assert.deepStrictEqual((await client.db('node').listCollections().toArray()).map((c) => c.name), ['posts']);
    await client.db('node').dropDatabase();
  } finally {
    await client.close();
  }
}

main(process.argv[2], {})
  .then(() => main(process.argv[2], { compressors: ['zlib'] }))
  .then(() => console.log('node: all right'), (e) => { console.error(e); process.exit(1); });
