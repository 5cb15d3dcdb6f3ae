package runner

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runtime"
)

func TestJitter(t *testing.T) {
	began := time.Now()
	at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
	e := &episode{began: began, healed: at(60)}
	var connections []link.Connection
	var samples []link.Sample
	open := func(node int, class string, seconds float64) {
		connections = append(connections, link.Connection{Node: fmt.Sprint(node), Class: class, Opened: at(seconds)})
	}
	cross := func(node int, class string, second, bytes int) {
		samples = append(samples, link.Sample{
			At: at(float64(second)), Node: fmt.Sprint(node), Class: class, Bytes: int64(bytes),
		})
	}
	open(0, runtime.ClassPool, -100) // it led
	for second := range 80 {
		cross(0, runtime.ClassPool, second, 1e6)
	}
	open(1, runtime.ClassPool, 30.5)
	if j := findJitter(e, connections, samples); j != nil {
		t.Errorf("one node is no window: %+v", j)
	}
	open(2, runtime.ClassPool, 40)
	open(3, runtime.ClassControl, 20)
	open(4, runtime.ClassPool, 61) // when all was over
	for second := range 80 {
		if second >= 30 {
			cross(1, runtime.ClassPool, second, 100)
		}
		if second >= 40 {
			cross(2, runtime.ClassPool, second, 100)
		}
		cross(3, runtime.ClassControl, second, 1e6)
	}
	cross(2, runtime.ClassPool, 45, 300) // it catches up
	j := findJitter(e, connections, samples)
	if j == nil || len(j.switched) != 2 || !j.first.Equal(at(30.5)) || !j.last.Equal(at(40)) ||
		j.bytes != 29*100+19*100+300 || j.peak != 500 || j.buckets != 29 {
		t.Errorf("%+v", j)
	}
}
