// Package jobs runs the Jobs of Weir on nodes. It joins nodes: it runs a Job on each node that gets the label of a
// pool, which directs the kubelet to the hub, and another Job for the way back when the label is removed. And it lets
// Jobs run that bring images to nodes.
//
// # What is wanted
//
// A Node with the label of a pool that has a NodePool and a Pool is to be in it. A Node without a label is to be in
// none. Of a label that names a pool which nobody describes nothing follows: the node stays as it is. The work itself
// is that of package install, which is idempotent, finishes what was cut short, and undoes what fails.
//
// # The record
//
// It is the Job: its name follows from the node, so a node never has two; its annotation says which pool the node was
// to be in when it began; its conditions say how it ended. So another weir-manager goes on from what there is.
//
//   - One that runs is left to run, whatever becomes of the label meanwhile. What is wanted then is begun when it has
//     ended. So labels that flip leave no node half-way.
//   - One that ended well says that this was done, and stays for as long as that is wanted. A person who calls weir
//     node leave afterwards is not overruled.
//   - One that failed says so, and is not tried again until the label is another one, or a person deletes the Job, or
//     joins the node by hand.
//   - One that made no progress is replaced by one of the same name that is suspended, and says why. Where no container
//     had begun, the node is tried again after the others. Else that is a failure.
//   - One whose image is not the one that Jobs run now is of a former release: it is begun again, and the node gets the
//     hub of this one. A hub that does not prove itself is taken off by the node itself (package install), and after
//     two of these the other nodes keep theirs.
//
// A node whose condition contract.JoinedCondition is True, and that has no Job, was joined by hand: it is left as it is
// until its label goes.
//
// # Order
//
// One node of a pool at a time, those that leave first; then by name. A node has to be Ready and to reach the cloud,
// and hubs have to be told of its pool (leader-hub-<pool>) before it begins. After two failures no more of the pool
// begin: the condition NodesInstalled of the Pool says why, and what to do. Those that leave are counted by themselves.
// So at an upgrade one node of a pool gets the image across the link. The others find it in the pool, by the mirrors of
// their hubs (package images), also if the first one failed after its pull. A node that joins has no mirror before, and
// pulls for itself.
// Before a Job is begun, Jobs are listed at kube-apiserver itself: a cache that is late would let two begin.
//
// # Why a Job
//
// It outlives its Pods: a Pod that is evicted, or whose node starts again in the middle, is no failure, and the next
// one goes on. A bare Pod would need all that here again. Only the exit codes 1 and 2 are: they are the machine's own
// word. The Job is bound to its node by spec.nodeName and tolerates everything. It has no token: on the machine the
// work goes by the kubelet's own kubeconfig. Restarting the kubelet does not end its Pod, but the work does not run in
// it anyway: see package operator/node. A later Job waits for a unit that still runs.
//
// # Progress
//
// A pull may take as long as it needs, and a Job that does nothing must not keep the others. The Pod is what can be
// seen; progress.go has the times:
//
//   - Its container waits, and nothing failed: the image is being pulled. A kubelet writes no status while it pulls, so
//     nothing tells a pull from what comes before it; not even the condition PodReadyToStartContainers does. But
//     containerd ends a pull that gets no byte for five minutes, and that is a failure. So this counts as progress, for
//     three hours.
//   - Its container waits for another reason, as ErrImagePull and ImagePullBackOff: that is no progress, and may last
//     half an hour. kubelet shows the last failure until a pull has ended well, also while the next one goes on.
//   - There is no Pod, its kubelet has not begun with it, or the node is not Ready or cut off: the same.
//   - Its container runs, or has ended and the Job does not say so: the same, from then on. The work itself takes less.
//
// Half an hour counts from when something went on last. A weir-manager that starts again has not seen that, so the age
// of the Pod counts then: a restart gives nobody more time, and all else stands in the cluster. Events are not read:
// kubelet drops those of a Pod after 25, which a back-off writes in minutes.
//
// The Job that has its time behind it is deleted, and the next node of the pool begins. The node is tried again when
// those that were tried less had their turn, after a pause that grows from ten minutes to 160. Nothing was done to its
// machine, so that is no failure of the release: it does not count to the two after which a pool stops.
// activeDeadlineSeconds is for a cluster whose weir-manager is away.
//
// # Switched off
//
// The images that Jobs may run stand in the ConfigMap contract.InstallerImages, which weir-manager cannot write. If
// none stands there, nothing is begun. What runs goes on. The Secrets by which kubelets pull them stand there, too.
//
// # What a stolen token of weir-manager could do
//
// The policy weir-manager-installer lets weir-manager make Jobs of this form only, with such an image, and with
// arguments that join a pool or leave it. It has privileges on nodes, but no choice of what it does with them. Nor can
// it name another Secret to pull by, which the kubelet of the node might read then.
//
// # Images
//
// AddPreloads lets the Jobs of weir images pull run: one of a pool at a time, in the hours that its Pool names. It
// makes and deletes none. What runs, and which comes first, says package nodejob. The Jobs are the record: those that
// are suspended wait. So another weir-manager goes on from what there is.
//
// A stolen token of weir-manager could let such a Job run at another hour, and no more: the policy weir-manager-preload
// lets weir-manager change nothing but spec.suspend.
//
// # Goroutines
//
// Add and AddPreloads start none. What they add runs while the manager leads, and ends with its context.
package jobs
