// Package identity answers two questions while the cloud is away: who is calling, and what may the caller read? It
// repeats what the cloud decided before. What the cloud never decided is refused.
//
// # Who is calling
//
//	caller shows                                          is taken for
//	a certificate of this node (the hub judges it)        the node
//	a token of a service account                          the service account, if all of the below hold
//	any other token                                       itself, if the cloud has taken this very token before
//	another certificate, nothing                          nobody: 401
//
// A token is authentic if its signature fits a key of the cluster (RS, PS or ES with 256, 384 or 512 bits; never "none"
// and never a shared secret), or if the cloud has taken this very token while it was there, which is remembered by its
// hash. The latter is for tokens that only the cloud can judge (static ones, of a webhook, of an identity provider, of
// a second issuer), and for a hub that may not read the keys. A token that says it is of the cluster's issuer is judged
// by the keys alone as soon as there are any: so a key that was taken away is no longer valid.
//
// An authentic token of a service account must be for the API: it names all audiences of one that the cloud has taken
// in the last Config.TTL (before it has taken any: the issuer, as kube-apiserver has it by default). So nobody has to
// tell a hub what the API is called. It must be valid at this time (see below), and must be bound to a pod of this node
// that the store knows, by name, uid and node, and whose deletion is not over. One that is bound to a node must be
// bound to this one. One that is bound to nothing or to a Secret counts only if the cloud has taken it before, as does
// a token of the legacy kind. A 401 of the cloud to a token is remembered as well: it is refused from then on, if it
// stands (see below). While the cloud is there it is remembered for 10 s, of any credentials (Refused), and ends the
// streams that they have opened (While), be it one in passing or not: they are opened again.
//
// Impersonation is part of the one that calls: what the cloud decided for a caller in another's name counts for both
// together. It is filed under the caller.
//
// # What they may read
//
// What the cloud decided last for this caller about this very read: verb, resource, namespace, name and selectors. A
// read that was answered was allowed (200, 304, 404, 410), 403 was not; the hub tells both of all reads that pass
// through it (Learn), and what it asked itself for reads from relays. The later decision counts, but a denial only if
// it stands. A caller that may do a read may do one that shows no more, unless just that was denied: to list is to
// watch, to list or watch one object is to get it, a whole collection has each part in it, and the pods that the
// kubelet watches each of them. Who may read the logs of all pods of a namespace may read those of each, and so for
// other subresources. But what shows no more than such a read, and was denied after it was allowed, has taken it back:
// who was denied to list has lost the watch that was allowed before. An allowance counts Config.TTL after the cloud
// said so last; for the node itself it does not age, since its pods must come back however long it is cut off.
//
// Decisions are kept on disk as hashes of identities and of what was asked, in a file readable by its owner alone,
// bounded in number for each caller and in callers. One identity is one caller, whatever tokens it has and whatever
// names it tries, so it cannot crowd out another. Of more than 1024 those go that were not seen for the longest time,
// and the node never does. The Node authorizer decides for each object, and so does what is kept: a node that may read
// a Secret of its own pods has no word on any other.
//
// # What stands
//
// A kube-apiserver that starts denies what it allows when it knows its rules, for some seconds, and one without its
// etcd takes no token. So a denial, be it 403 or 401, counts without the cloud only when it was said twice, Stands (10
// s) apart, with no other answer between them and no break of the link: after a break it may be another process that
// starts. Until then what was allowed before counts. A caller that was never allowed gains nothing by that. What was
// denied once and not asked again by its caller, the hub asks itself, 12 s later, by an access review with the caller's
// credentials, which it keeps in memory so long (Doubts). So who loses a right has to cut the link within these seconds
// to keep it.
//
// # Time
//
// Validity is judged by Config.Now, which is that of a pki.Proven: the Date of the cloud's last answer to this process,
// and the monotonic clock since. So steps of the local clock change nothing. Before the cloud has answered, it is the
// local clock or the latest time that was proved, whichever is later: a node without a battery clock, which starts in
// 1970, takes up where the cloud was last heard, some minutes less. A token counts from Skew (5 minutes) before its
// time until Config.Allowance after it: kubelets cannot renew tokens while the cloud is away. (For this node's
// certificate the hub does the same.) The time that a machine was off without a clock is not known, and tokens live
// that much longer there.
//
// # Keys
//
// Run fetches /openid/v1/jwks when the first token of a service account passes, then once an hour, also across
// restarts. In a pool the first time costs the cloud nothing but for one hub: the others take the key that signed the
// token from the coordinator, proven by that token (see fromPool), and wait for it up to 30 s. A question to the cloud
// goes with a token that it has just taken, over the connection that is open for it: 1 kB, where a connection of the
// hub's own costs 5. The token's issuer is the cluster's if one of the keys signed it. Where that cannot be (a cluster
// may forbid it, have several issuers, or no token passes: a minute after the start, 10 minutes after the hour), it
// asks as the hub, also for /.well-known/openid-configuration, which names the issuer; the role weir:hub grants both to
// the hubs. If the cloud has taken a token of a key that is not known, it asks again, but not within 10 minutes: bad
// tokens cost no bytes. After a failure it pauses, 15 s to 5 min. The keys are kept in the store. A hub without keys
// says so in its log. What the cloud decided before they were known is filed under the token, and found there.
//
// # What callers are told
//
// 401 for what is wrong, 503 for what only the cloud can tell, without details; the details are logged, each once in 10
// minutes, and so many lines and no more (limit.Quiet).
//
// # Goroutines
//
// New starts none. Run is one for the keys, one for the file and one that looks after the pods of open streams; all end
// with its context.
package identity
