// kafkajs: each capability in turn.
const { Kafka, logLevel } = require('kafkajs')
const assert = require('node:assert')

const [servers, name] = process.argv.slice(2)
const kafka = new Kafka({ clientId: 'judge', brokers: servers.split(','), logLevel: logLevel.ERROR })

async function read(count, groupId, topic) {
  const consumer = kafka.consumer({ groupId })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const seen = []
  await new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`${seen.length} of ${count} records came`)), 40000).unref()
    consumer.run({ eachMessage: async (message) => { if (seen.push(message.topic) === count) resolve() } }).catch(reject)
  })
  await consumer.disconnect() // commits what was handled
  return [...new Set(seen)].sort()
}

const steps = {
  async list_topics() {
    const admin = kafka.admin()
    await admin.connect()
    const topics = await admin.listTopics()
    await admin.disconnect()
    assert(topics.includes(`${name}-a`) && topics.includes(`${name}-b`), topics)
  },
  async produce() {
    const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
    await producer.connect()
    const messages = [...Array(100).keys()].map((n) => ({ key: `k${n}`, value: `v${n}` }))
    await producer.send({ topic: `${name}-a`, messages })
    await producer.send({ topic: `${name}-b`, messages: [{ value: 'v' }] })
    await producer.disconnect()
  },
  async pattern() {
    const topics = await read(101, `${name}-pattern`, new RegExp(`^${name}-[ab]$`))
    assert.deepStrictEqual(topics, [`${name}-a`, `${name}-b`])
  },
  async classic() {
    await read(100, `${name}-classic`, `${name}-a`)
  },
  async transaction() {
    const options = { transactionalId: `${name}-tid`, idempotent: true, maxInFlightRequests: 1 }
    const producer = kafka.producer(options)
    await producer.connect()
    for (const value of ['committed', 'aborted']) {
      const transaction = await producer.transaction()
      await transaction.send({ topic: `${name}-tx`, messages: [{ value }] })
      await (value === 'committed' ? transaction.commit() : transaction.abort())
    }
    await producer.disconnect()
  },
}

async function main() {
  console.log('version', require('kafkajs/package.json').version)
  for (const [step, run] of Object.entries(steps)) {
    await run()
    console.log('can', step)
  }
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1) })
