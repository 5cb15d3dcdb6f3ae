// Package overlay has Services follow their pods while the cloud is away: it says what kubelets of this node report of
// their pods, hears the same of the other nodes of the pool, and lays it over what clients of this node read from
// relays, and from the store. All decisions about that are those of package moved.
//
//	queue of statuses ──► speaker ──► desks of the pool ──► Overlay: moved.Set ──► layer ──► rest.Handler
//
//	Overlay  one for a hub: its loop, and what it knows of the pool
//	speaker  the statement of this node: its numbers, which only grow, and its signature
//	shown    the views of one resource
//	layer    what clients read of one relay, or of a list of the store: gets, lists
//	laid     and one watch
//
// # When
//
// An outage begins when this node is cut off from the cloud. From then on the hub states each change of its pods at
// once, a sign of life each moved.Every, and reads what others state every two seconds. It ends when the cloud is back
// and nothing is corrected any more, two minutes later at most. While there is none, nothing is laid over. The hub says
// every ten minutes that it is there, and hears who else is: so it knows of nodes that are dead when the outage begins.
//
// Nodes become silent only while the whole pool is cut off: this node is, and its relay of the slices hears nothing.
// Of a node that is cut off alone, its own clients and other nodes that are cut off hear. A hub that reaches the cloud
// shows what the cloud says.
//
// # What is kept
//
// The file "moved" in the folder for data has four things: numbers that were given to statements, the nodes of the
// pool, which boot of the machine it was, and which objects clients may have in a corrected form (moved.View.Owed).
// After another boot no pod is where it was, and the kubelet says of each what became of it. A hub that was started
// alone says nothing of the kind. Without the last thing, a client that comes back after a restart would keep a form
// for which there is no correction any more, until the cloud changes that object. The file is written before such a
// form is shown.
//
// # Clients of the store
//
// They have the same rules, with a view for each answer. Nobody here hears what the cloud says of their objects. So
// they stay with the store when the cloud is back, until a first correction ends (Holds): where slices are in no relay,
// that is when the cloud has the last word. Then their watches end, before the former address is shown. They go on at
// the cloud, and are first shown what they may have in a corrected form, as the cloud had it (Owed). What that is is
// forgotten ten minutes later.
//
// # Goroutines
//
// Run is one, and requests to desks have one each. All end with its context. All other methods may be called by many.
package overlay
