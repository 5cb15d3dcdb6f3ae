package virtual

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// unreached are the inputs, by the ends of their paths, that random schedules leave at one value, and why. What else
// they leave so is a failure.
var unreached = map[string]string{
	"Up.Compresses":  "no stream is compressed here: package source compares what a list costs (TestThrift)",
	"Up.Plain":       "each cloud here knows streaming lists: package source has one that does not",
	"Feed.Leaf":      "it decides between lists of which one is compressed",
	"Up.Unconfirmed": "a refill takes one list here, and no step of a plan: package lead has the steps",
	"Up.ID":          "a link, never nil",

	".Idle[]":              "there is one resource",
	"Resources[].Resource": "there is one resource",
	"Relays[].Name":        "there is one resource", "Observation.Denied[]": "there is one resource",

	".NewerField": "for people: nothing is decided by it", ".Watchers": "for people: nothing is decided by it",
	"Status..Doubt": "it is handed on to package lead",
	"Pulse.Late":    "each process here runs in time: package lead measures how late one is",

	"Election..Exists": "a watch shows what there is", "Sync..Exists": "a watch shows what there is",
	"Sync..AcquireTime": "nobody acquires it", "Sync..Transitions": "nobody acquires it",
	"Sync..Duration": "each hub of a pool has the same",
}

func whyUnreached(path string) string {
	for end, why := range unreached {
		if strings.HasSuffix(path, end) {
			return why
		}
	}
	return ""
}

// TestInputsAreReached: random schedules give each input of the machines of package member more than one value. What
// they leave at one value is not tested by them, whatever they run.
func TestInputsAreReached(t *testing.T) {
	r := inputs{}
	seeds := rand.New(rand.NewPCG(*from, 0))
	for range 150 {
		scheduleOf(t, seeds.Uint64(), func(in any) { r.walk(reflect.TypeOf(in).String(), reflect.ValueOf(in)) })
	}
	for _, path := range slices.Sorted(maps.Keys(r)) {
		switch why := whyUnreached(path); {
		case why == "" && len(r[path]) < 2:
			t.Errorf("%s has one value in all schedules: %v", path, r[path])
		case why != "" && len(r[path]) > 1:
			t.Errorf("%s is reached, %v; it is said not to be: %s", path, r[path], why)
		}
	}
}

// inputs has values of each field, by its path; two are enough.
type inputs map[string][]string

func (r inputs) walk(path string, v reflect.Value) {
	leaf := func(value any) {
		if seen := r[path]; len(seen) < 2 {
			if text := fmt.Sprint(value); !slices.Contains(seen, text) {
				r[path] = append(seen, text)
			}
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		if at, ok := v.Interface().(time.Time); ok {
			leaf(at)
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				r.walk(path+"."+f.Name, v.Field(i))
			}
		}
	case reflect.Pointer, reflect.Interface:
		leaf(v.IsNil())
		if !v.IsNil() && v.Kind() == reflect.Pointer {
			r.walk(path+".", v.Elem())
		}
	case reflect.Slice:
		leaf(v.Len())
		for i := range v.Len() {
			r.walk(path+"[]", v.Index(i))
		}
	default:
		leaf(v.Interface())
	}
}
