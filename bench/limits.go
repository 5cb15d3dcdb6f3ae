package bench

// The targets, and who says so. A figure beyond its target is reported as missed and makes the command fail; a target is never moved to where
// a figure is. Targets of scenarios are those of their files.
const (
	edgeMachine = "a hub and a coordinator have their place on edge machines with 512 MB beside what these are for"
	listWatch   = "requirement for the cost of list and watch: a pool's cache must be cheaper than asking the cloud's API server"
	diskWear    = "requirement for flash storage: a node that is idle, or whose pods churn, must not wear it out"
)

var (
	coordinatorIdle   = AtMost(32, edgeMachine)
	coordinatorFilled = AtMost(110, edgeMachine)
	hubIdle           = AtMost(16, edgeMachine)
	hubFilled         = AtMost(40, edgeMachine)
	simultaneousLists = AtMost(32, edgeMachine)

	listCost   = AtMost(0.7, listWatch)
	watchCost  = AtMost(0.33, listWatch)
	latencyP50 = AtMost(0.5, listWatch)
	latencyP99 = AtMost(2, listWatch)

	writtenIdle  = AtMost(1, diskWear)
	writtenChurn = AtMost(0.5, diskWear)
	openTime     = AtMost(500, "requirement for a start without the cloud; first_offline_answer_seconds in scenarios/autonomy/offline-hub-restart.yaml")
	openMemory   = AtMost(16, edgeMachine)
)
