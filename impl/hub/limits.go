package hub

import "time"

// What others than this node may take. docs/limits.md is the table of it.
const (
	maxConnections        = 512 // of a port
	maxConnectionsAddress = 256
	maxHeader             = 64 << 10 // of one request; kube-apiserver takes 1 MiB, but tokens here are 16 KiB at most
	maxStreams            = 100      // of one HTTP/2 connection, as kube-apiserver allows
	maxStreamsNode        = 1000     // the same of this node: a kubelet watches each secret it needs
	receiveBuffer         = 256 << 10
	headerTimeout         = 10 * time.Second
	idleTimeout           = 3 * time.Minute

	maxRequests        = 1000 // under way
	maxCallerRequests  = 250
	maxUnproven        = 200
	maxUnprovenAddress = 100
	unprovenBody       = 10 * time.Second // for the body of a request

	maxUntaken        = 256 // whose answer the client has not taken yet
	maxUntakenAddress = 128

	refusalPause = 20 * time.Millisecond // until more is read of a connection, for each request on it that a limit refused
	stallTimeout = time.Minute           // for which a client may take nothing of an answer

	maxReviews       = 256 // that wait or are under way
	maxCallerReviews = 128
	parallelReviews  = 32

	defaultCallerRate  = 20 // new requests to the cloud a second
	defaultCallerBurst = 40 // controllers ask for 20 to 30 (controller-runtime); more is 10 kB/s for seconds
	maxCallerLimit     = 100_000
	publicRate         = 4 // the same of all who have no credential
	publicBurst        = 10

	maxAnonymousConnections = 4 // to each server of the cloud
	maxPublicAnswer         = 64 << 10
	maxProofConnections     = 2
	maxTrusting             = 4                // unknown tokens whose requests are under way unasked
	maxTrusted              = 2                // requests with one of them
	trustTime               = time.Minute      // for which one still counts that was left before its answer
	suspicion               = 10 * time.Minute // for which tokens have to be proved after the cloud refused one
	proofRate               = 5
	proofBurst              = 30
	proofRateAddress        = 2
	proofBurstAddress       = 10

	maxKnownTokens = 4096
	maxCallers     = 4096
	tellRefused    = time.Minute
)
