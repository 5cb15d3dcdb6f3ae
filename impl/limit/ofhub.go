package limit

import "time"

// What callers of a hub other than its own node may take.
const (
	MaxConnections        = 512 // of a port
	MaxConnectionsAddress = 256
	MaxHeader             = 64 << 10 // of one request; kube-apiserver takes 1 MiB, but tokens here are 16 KiB at most
	MaxStreams            = 100      // of one HTTP/2 connection, as kube-apiserver allows
	MaxStreamsNode        = 1000     // the same of this node: a kubelet watches each secret it needs
	ReceiveBuffer         = 256 << 10
	HeaderTimeout         = 10 * time.Second
	IdleTimeout           = 3 * time.Minute

	DefaultCallersBytes = 64 << 20 // of requests under way; one caller alone may take three quarters
	LeastCallersBytes   = 8 << 20
	// a watch counts as: a stream, its buffers and what it has under way. 400 of them take 52 KiB each.
	WatchBytes = 64 << 10
	// the same of any other request. It takes 45 KiB while the cloud is slow to answer, and 20 KiB while it waits for one
	// of its caller's ways. One caller alone may have 307 under way: a controller asks for up to 300 kinds at once, see
	// below.
	RequestBytes = 160 << 10

	// CallerWays is how many requests of one caller are at the cloud at once: of collections, and of all else as many.
	// Further ones wait. 32 carry what a caller may send a second as long as the cloud answers within 1.6 s. They are a
	// third of the streams that kube-apiserver takes on a connection, which all callers share.
	CallerWays = 32
	// WaitingBody is how many bytes the body of a request that waits may have. They are read before. A larger one does
	// not wait: what is unread of it takes room of its connection (ReceiveBuffer), and a request at the cloud may need
	// that room for the rest of its own body.
	WaitingBody = 16 << 10

	MaxUnproven        = 200
	MaxUnprovenAddress = 100
	UnprovenBody       = 10 * time.Second // for the body of a request

	MaxPeerRequests  = 400 // under way at the pool port, of one hub of the pool: 64 resources, and what goes with each
	MaxPeersRequests = 20_000

	MaxUntaken        = 256 // whose answer the client has not taken yet
	MaxUntakenAddress = 128

	RefusalPause = 20 * time.Millisecond // until more is read of a connection, for each request on it that a limit refused
	StallTimeout = time.Minute           // for which a client may take nothing of an answer

	MaxKubelet       = 16 // streams of the node's own kubelet, while the cloud is away
	MaxKubeletCaller = 8

	MaxReviews       = 256 // that wait or are under way
	MaxCallerReviews = 128
	ParallelReviews  = 32

	// Controllers go on at 20 to 30 requests a second (controller-runtime). At its start one lists and watches each kind
	// that it knows, up to 300 (Argo CD, Crossplane). What of these is under way at once is bounded by its bytes. The
	// burst costs the uplink once what the rate costs in half a minute, some 300 kB.
	DefaultCallerRate  = 20 // new requests to the cloud a second
	CallerRest         = 30 // seconds whose requests one that rested may send at once
	DefaultCallerBurst = DefaultCallerRate * CallerRest
	MaxCallerLimit     = 100_000
	PublicRate         = 4 // the same of all who have no credential
	PublicBurst        = 10

	MaxAnonymousConnections = 4 // to each server of the cloud
	MaxPublicAnswer         = 64 << 10
	MaxProofConnections     = 2
	MaxTrusting             = 4                // unknown tokens whose requests are under way unasked
	MaxTrusted              = 2                // requests with one of them
	TrustTime               = time.Minute      // for which one is still valid that was left before its answer
	Suspicion               = 10 * time.Minute // for which tokens have to be proved after the cloud refused one
	ProofRate               = 5
	ProofBurst              = 30
	ProofRateAddress        = 2
	ProofBurstAddress       = 10

	MaxKnownTokens = 4096
	MaxVerdicts    = 4096 // that allow a read; those that deny are fewer, see package access
	MaxCallers     = 4096
	TellRefused    = time.Minute
)
