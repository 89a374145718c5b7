package resolve

// queuesInForce says that the dataplane has queues. Until then they are read, and a load
// refuses them unless the user does without them.
const queuesInForce = true
