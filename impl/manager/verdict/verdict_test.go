package verdict

import (
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	for _, c := range []Config{
		{}, {Grace: -1}, {Grace: time.Second, Silent: time.Second}, {Grace: time.Second, Silent: -1},
	} {
		if c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	if err := (Config{Grace: time.Minute, Silent: 20 * time.Second}).Validate(); err != nil {
		t.Error(err)
	}
}
