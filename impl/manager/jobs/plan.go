package jobs

import (
	"cmp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodejob"
)

// decide tells what is to be done about a node: a Job begins, one that has ended is of no use any more, or nothing.
func (s *stand) decide(n *corev1.Node) (begin *start, useless *batchv1.Job) {
	want, known := s.wants(n)
	j := s.job(n)
	if !known {
		return nil, nil
	}
	if j == nil {
		if joined(n) == (want != "") {
			return nil, nil
		}
		return &start{node: n, pool: want, of: want}, nil
	}
	is, at := nodejob.PhaseOf(j)
	was := j.Annotations[contract.InstallPool]
	switch {
	case is == nodejob.Running || !j.DeletionTimestamp.IsZero():
		return nil, nil
	case was == want && is == nodejob.Done && want == "" && !joined(n):
		return nil, j
	case was == want && (is == nodejob.Failed || is == nodejob.Aside) && settled(n, want, at),
		is == nodejob.Aside && want == "" && !joined(n): // nothing was done to it
		return nil, j
	case is == nodejob.Aside && was == want && !s.former(j):
		if !s.rested(j) {
			return nil, nil
		}
		return &start{node: n, pool: want, of: cmp.Or(want, pool(j)), former: j, tries: triesOf(j)}, nil
	case is == nodejob.Aside && was == want:
		return &start{node: n, pool: want, of: cmp.Or(want, pool(j)), former: j}, nil
	case was == want && want != "" && s.former(j) && (is == nodejob.Failed || joined(n)): // there is another hub since
		return &start{node: n, pool: want, of: want, former: j}, nil
	case was == want:
		return nil, nil
	case is == nodejob.Failed && want == "" && condition(n, contract.JoinedCondition).Status == corev1.ConditionFalse:
		// it was undone at once.
		return nil, j
	}
	return &start{node: n, pool: want, of: cmp.Or(want, was), former: j}, nil
}

// plan is what is to be done now.
func (s *stand) plan() (begin []start, useless []*batchv1.Job) {
	busy, failures := map[string]bool{}, map[[2]string]int{}
	for i := range s.jobs {
		j := &s.jobs[i]
		if s.of(j) == nil { // it is no node any more, and its Pods cannot run
			useless = append(useless, j)
			continue
		}
		switch is, _ := nodejob.PhaseOf(j); is {
		case nodejob.Running:
			busy[pool(j)] = true
			if one := s.aside(j); one != nil {
				begin = append(begin, *one)
			}
		case nodejob.Failed:
			if s.former(j) { // what comes with another image is tried
				continue
			}
			failures[s.kind(pool(j), j.Annotations[contract.InstallPool])]++
		}
	}
	var ready []start
	for i := range s.nodes {
		n := &s.nodes[i]
		one, j := s.decide(n)
		if j != nil {
			useless = append(useless, j)
		}
		if one != nil && able(n) && (one.pool == "" || s.told[one.pool]) {
			ready = append(ready, *one)
		}
	}
	slices.SortStableFunc(ready, func(a, b start) int {
		return cmp.Or(cmp.Compare(s.tried[a.node.UID]+a.tries, s.tried[b.node.UID]+b.tries),
			cmp.Compare(min(len(a.pool), 1), min(len(b.pool), 1)))
	})
	for _, one := range ready {
		if s.image != "" && !busy[one.of] && failures[s.kind(one.of, one.pool)] < most {
			busy[one.of] = true
			begin = append(begin, one)
		}
	}
	return begin, useless
}

// kind is of what failures are counted together.
func (s *stand) kind(of, pool string) [2]string {
	if pool == "" {
		return [2]string{of, "leave"}
	}
	return [2]string{of, "join"}
}
