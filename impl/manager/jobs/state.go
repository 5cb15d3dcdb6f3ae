package jobs

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodejob"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// Reasons of the condition NodesInstalled, and of Events.
const (
	reasonJoined  = "Joined"
	reasonRunning = "Installing"
	reasonWaiting = "Waiting"
	reasonRefused = "WriteFailed"
	reasonFailed  = "InstallFailed"  // an Event of the Node, too
	reasonStalled = "InstallStalled" // likewise
	reasonStopped = "InstallsStopped"
	reasonBegun   = "WeirInstallBegun" // an Event of the Node
)

// named is how many nodes a condition names.
const named = 5

// tell is the condition of a pool; nil: there is nothing to tell of.
func (s *stand) tell(pool string) *metav1.Condition {
	members, in := 0, 0
	var runs, fails, asides, waits []string
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.Labels[contract.NodePoolLabel] != pool {
			continue
		}
		members++
		j := s.job(n)
		is := nodejob.Done
		if j != nil {
			is, _ = nodejob.PhaseOf(j)
		}
		switch {
		case j == nil && joined(n), j != nil && is == nodejob.Done && j.Annotations[contract.InstallPool] == pool:
			in++
		case j != nil && is == nodejob.Running:
			runs = append(runs, said(n.Name, s.doing(j)))
		case j != nil && is == nodejob.Failed && j.Annotations[contract.InstallPool] == pool:
			fails = append(fails, said(n.Name, nodejob.Why(j, s.pods)))
		case j != nil && is == nodejob.Aside && j.Annotations[contract.InstallPool] == pool:
			asides = append(asides, said(n.Name, nodejob.Why(j, s.pods)))
		default:
			waits = append(waits, n.Name)
		}
	}
	c := &metav1.Condition{Type: poolv1.NodesInstalled, Status: metav1.ConditionFalse}
	switch {
	case members == 0 || s.image == "" && len(runs)+len(fails)+len(asides) == 0:
		return nil
	case len(fails) >= most:
		c.Reason = reasonStopped
		c.Message = fmt.Sprintf("%d installs failed, and no more begin: %s; mend the cause, then %s", len(fails),
			some(fails, "; "), nodejob.Retry(pool))
	case len(fails) > 0:
		c.Reason, c.Message = reasonFailed, fmt.Sprintf("%s; mend the cause, then %s", some(fails, "; "), nodejob.Retry(pool))
	case s.refused[pool] != nil:
		c.Reason, c.Message = reasonRefused, s.refused[pool].Error()
	case len(runs) > 0:
		c.Reason, c.Message = reasonRunning, fmt.Sprintf("%d of %d have joined; at work on %s", in, members, some(runs, "; "))
		if len(waits) > 0 {
			c.Message += "; these wait for it: " + some(waits, ", ")
		}
		if len(asides) > 0 {
			c.Message += "; these had their turn, and are tried again: " + some(asides, "; ")
		}
	case len(asides) > 0:
		c.Reason, c.Message = reasonStalled,
			fmt.Sprintf("%d of %d have joined; these had their turn, and are tried again: %s", in, members, some(asides, "; "))
	case len(waits) > 0:
		c.Reason, c.Message = reasonWaiting,
			fmt.Sprintf("%d of %d have joined; these wait, because they are not Ready, their pool is not told yet, or another "+
				"one is at work: %s", in, members, some(waits, ", "))
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonJoined, fmt.Sprintf("%d of %d have joined", in, members)
	}
	return c
}

// doing tells what a Job is at; "": its work.
func (s *stand) doing(j *batchv1.Job) string {
	if is := s.progress(j); is.pulls {
		return "it gets the image first"
	}
	return nodejob.Why(j, s.pods)
}

func said(node, why string) string {
	if why == "" {
		return "node " + node
	}
	return "node " + node + ": " + why
}

// some names a few of many.
func some(all []string, between string) string {
	text := strings.Join(all[:min(len(all), named)], between)
	if more := len(all) - named; more > 0 {
		text += fmt.Sprintf("%sand %d more", between, more)
	}
	return text
}
