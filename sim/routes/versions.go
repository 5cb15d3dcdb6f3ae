package routes

import (
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// versioned is what a slice was at a version.
type versioned struct{ slice, version string }

// Versions holds the versions of slices that clients were shown against those that the cloud gave, and tells of each
// that is wrong. cloud is a client that was shown all that the cloud had.
//
//   - A slice at a version of the cloud's is what the cloud had at it. A corrected one has another version, so no write
//     that is based on it succeeds.
//   - A version that is not the cloud's is below one of the cloud's: nobody invents a later one.
//   - Of the cloud's versions of a slice, no client is shown an earlier one again.
func Versions(cloud Client, clients []Client) (wrong []string) {
	had, newest := map[versioned]map[string][]Endpoint{}, map[string]uint64{}
	for _, s := range cloud.Shown {
		if s.Version != "" {
			had[versioned{s.Slice, s.Version}] = s.Pods
			newest[s.Slice] = max(newest[s.Slice], number(s.Version))
		}
	}
	for _, c := range clients {
		reached := map[string]uint64{}
		for _, s := range c.Shown {
			if s.Version == "" { // it is gone
				delete(reached, s.Slice)
				continue
			}
			n := number(s.Version)
			is, cloudHas := had[versioned{s.Slice, s.Version}]
			why := ""
			switch {
			case cloudHas && !reflect.DeepEqual(is, s.Pods):
				why = fmt.Sprintf("at the cloud's version %s it leads to %v, the cloud had %v", s.Version, s.Pods, is)
			case cloudHas && n < reached[s.Slice]:
				why = fmt.Sprintf("version %s comes after %d", s.Version, reached[s.Slice])
			case cloudHas:
				reached[s.Slice] = n
			case n >= newest[s.Slice]:
				why = fmt.Sprintf("the cloud never got to version %s", s.Version)
			}
			if why != "" {
				wrong = append(wrong, fmt.Sprintf("%s on %s: slice %s at %s: %s", c.Kind, c.Node, s.Slice,
					s.At.Format(time.TimeOnly), why))
			}
		}
	}
	return wrong
}

// number is a version in the order of the cloud's; 0: it is none.
func number(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64)
	return n
}
