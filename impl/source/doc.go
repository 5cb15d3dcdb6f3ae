// Package source fills relays by pulling: from the cloud, or from the relays of another process. Each step of that way
// is the same: a Feeder at the near end, and a kube-apiserver or a hop.Server at the far end. Package hop has what lies
// between.
//
// A Feeder keeps one relay fed from the hop.Upstream that its owner chose last. It lists once, then watches, and
// resumes at the version that the relay has reached, after any break and at any other upstream: versions are the
// cloud's everywhere. Watches are short at first (Config.WatchTimeout), because kube-apiserver sends a bookmark 2 s
// before a watch ends: that is what shows, on a quiet resource, that the stream still lives (rule 4 of a relay). The
// first stream, which began with the list, is kept for as long as it lasts if it is compressed, and a watch of the
// cloud that shows nothing lasts long. While these are quiet, short watches of metadata run beside them: one for all
// quiet streams over a connection, see Pulse.
//
// Bytes decide what follows a break. A short one is resumed at the version reached. After one in which more was missed
// than a list would bring, a compressed list is opened, with a watch of metadata beside it that tells what led there:
// see traced; and once plain watches have brought as much as the relay holds. A member.Plan decides that. After a 410
// the metadata of all objects tell what to fetch: see resync.
//
// # A link that is full
//
// A backlog may take a thin link minutes. What was applied is kept, and the next watch goes on behind it. Small
// questions go over a connection of their own (Upstream.Ask), so they do not wait for what pours. Where much may have
// been missed a question comes first: it tells how many versions, and so whether a list is the cheaper way. Nothing is
// taken for dead while bytes arrive (Upstream.Arrived), unless more arrived than can have been in front of it. An error
// that lasts is told each minute, with its age.
//
// # Relays of others
//
// Whose relays count may change while something is under way: Upstream.Admit is asked before each change of a relay.
//
// While nobody hears from the cloud, somebody may hold more than others. That is unconfirmed (Upstream.Unconfirmed): it
// moves a relay forward, in its own history, and makes nothing fresh.
//
// # The cloud's history
//
// A kube-apiserver whose etcd was restored from a backup accepts a watch from a version that it has not reached yet,
// and says nothing until it has. A relay that is fed by it (Upstream.Consistent) has to ask.
//
//   - When: a restore ends all processes that knew the lost history, so streams break and connections are new. The
//     upstream is asked behind the first watch that it accepts after it was chosen, after anything broke, after a watch
//     that ended before its time, and over each new connection. What is restored later than that breaks the watch. A
//     quiet or a busy stream costs nothing; a break costs about half a kilobyte a resource.
//   - What: the metadata of the object that changed last here, by a consistent read (no resourceVersion). The version
//     of the answer is etcd's. If it is below the relay's, the history is another one. If the cloud has passed that
//     version meanwhile, the object tells: an object whose version is not later than the relay's must be just what the
//     relay holds. If it changed later, or is gone, it is asked for as it was at the relay's version
//     (resourceVersionMatch=Exact).
//   - A list shows all of that by itself, also the list of metadata after 410, which is usual for the one that was away
//     longer: its version, and each object, are looked at in the same way.
//   - All resources of a cloud are in one etcd: what one feeder proves, its owner tells the others (Config.Learned,
//     Overrule).
//
// What remains: a cloud that was restored, and has passed the relay's version before the relay comes back, but has not
// forgotten it (its watch cache holds some minutes), while no resource of this hub had changed between the backup and
// the restore, or all objects asked for were made just the same a second time. The relay then lacks what changed
// between the backup and the relay's version. The UID of kube-system does not help: it is in the backup. (It would tell
// a cluster built again behind an old address; so do its versions, and the UIDs of its objects.)
//
// A restored cloud is listed whole, by one hub of the pool: objects that look the same by UID and version need not be,
// since versions were used twice. The list is there before anything is thrown away, so no client is ever answered 503.
//
// Within the pool nobody asks the cloud: a relay says which history it is in (rest.HistoryHeader). An upstream that is
// in a later one is listed once. One that is in an earlier one is waited for; if it shows signs of the cloud all the
// same for member.BehindPatience, it is the one that is right, and its number, though lower, is taken up: the pool
// began from nothing without a disk. A leader who finds the coordinator in a later history than its own was away
// meanwhile: it lists from the cloud what it could not prove to be wrong (Overrule). Histories are counted, so two of
// them that were found while a part was away are one for that part: a hub that comes back from a time before two
// restores, to parts that saw only the second, takes its objects for theirs until they contradict.
//
// Each function runs in its caller's goroutine until its context ends.
package source
