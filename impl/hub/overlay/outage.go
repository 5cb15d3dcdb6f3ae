package overlay

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Times of the loop.
const (
	readEvery  = 2 * time.Second        // between two reads of what others state, in an outage
	readMany   = 5 * time.Second        // the same in a pool of more than many nodes
	gathers    = 300 * time.Millisecond // statuses that come together are stated together
	helloEvery = 10 * time.Minute       // between two signs of life while there is no outage
	helloAgain = time.Minute            // the same if nobody heard it, and after the first one
	forgets    = 25 * time.Minute       // a node that greets no more has left the pool
	returns    = 2 * time.Minute        // after which the cloud has the last word of all
	freshFor   = 30 * time.Second       // a pool whose relays heard of the cloud within it is not cut off
	// marks is after how long the cloud may say of the pods of a node that they are not ready, since it does not hear
	// it: less than the shortest grace period, 40 s.
	marks = 30 * time.Second
	// stands is how long what kubelets said of pods counts when the cloud is back. They say it again each ten seconds.
	stands = 15 * time.Second

	many = 100
)

// outage is what the loop knows of the time without the cloud. Only the loop uses it.
type outage struct {
	on       bool
	began    time.Time
	any      bool      // there was a step before
	back     time.Time // since when the cloud is there again; zero: it is not
	released bool      // it has the last word
	told     bool      // the log says that something is corrected
	// rebooted are the pods that were on this machine when it lost its power, with what waited of them then, nil if
	// nothing did. Their kubelet has not said since what became of them.
	rebooted map[types.UID]*corev1.PodStatus
	// waited are the pods whose statuses wait, or did: with these, at the versions that the cloud had shown before.
	waited  map[types.UID]*corev1.Pod
	hello   time.Time // when the next sign of life is due while there is no outage
	greeted bool      // somebody has heard one since the hub began
}
