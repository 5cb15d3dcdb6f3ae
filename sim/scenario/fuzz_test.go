package scenario_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-edge/weir/sim/scenario"
)

// FuzzParse: no input makes the reader panic; what it refuses has mistakes, and what it takes can be written and
// read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	for _, pattern := range []string{"testdata/mistakes/*.yaml", shipped + "/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := scenario.Parse("", data)
		if err == nil {
			roundTrip(t, s)
			return
		}
		var mistakes scenario.FileErrors
		if !errors.As(err, &mistakes) || len(mistakes) == 0 || err.Error() == "" {
			t.Errorf("error %v of type %T, want mistakes", err, err)
		}
	})
}
