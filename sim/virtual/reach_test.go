package virtual

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/weir-edge/weir/impl/role"
)

// TestInputsAreReached: random schedules give each input of the role machine more than one value. What they leave at
// one value is not tested by them, whatever they run.
func TestInputsAreReached(t *testing.T) {
	typ := reflect.TypeFor[role.Input]()
	seen := make([]map[any]int, typ.NumField())
	for i := range seen {
		seen[i] = map[any]int{}
	}
	steps := 0
	note := func(in role.Input) {
		v := reflect.ValueOf(in)
		steps++
		for i := range seen {
			value := v.Field(i).Interface()
			if f := v.Field(i); f.Kind() == reflect.Pointer {
				value = f.IsNil()
			}
			if len(seen[i]) < 4 || seen[i][value] > 0 {
				seen[i][value]++
			}
		}
	}
	seeds := rand.New(rand.NewPCG(*from, 0))
	for range 150 {
		scheduleOf(t, seeds.Uint64(), note)
	}
	for i := range seen {
		t.Logf("%-12s %v", typ.Field(i).Name, seen[i])
		if len(seen[i]) < 2 {
			t.Errorf("%s has one value in %d steps: %v", typ.Field(i).Name, steps, seen[i])
		}
	}
}
