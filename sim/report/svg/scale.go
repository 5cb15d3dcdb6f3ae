package svg

import "math"

// Scale maps values from 0 to Max onto a stretch of a canvas.
type Scale struct {
	Max      float64 // of the values; at most 0 or not finite counts as 1
	From, To float64 // where 0 and Max are drawn; To may be the smaller one
}

// At returns where v is drawn. What is beyond the scale is drawn at its end.
func (s Scale) At(v float64) float64 {
	if math.IsNaN(v) {
		v = 0
	}
	return s.From + (s.To-s.From)*min(max(v/s.max(), 0), 1)
}

func (s Scale) max() float64 {
	if !(s.Max > 0) || math.IsInf(s.Max, 0) {
		return 1
	}
	return s.Max
}

// Ticks returns at most about count round values on the scale, from 0 upward.
func (s Scale) Ticks(count int) []float64 {
	return s.ticks(decimalStep(s.max() / float64(max(count, 1))))
}

// TimeTicks is Ticks for a scale in seconds: multiples of what clocks are divided by.
func (s Scale) TimeTicks(count int) []float64 {
	return s.ticks(timeStep(s.max() / float64(max(count, 1))))
}

func (s Scale) ticks(step float64) []float64 {
	limit := s.max() * (1 + 1e-9)
	var ticks []float64
	for i := 0; float64(i)*step <= limit && i < 100; i++ {
		ticks = append(ticks, float64(i)*step)
	}
	return ticks
}

// decimalStep returns the smallest of 1, 2 and 5 times a power of ten that is not below least.
func decimalStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= least*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

func timeStep(least float64) float64 {
	if least <= 1 {
		return decimalStep(least)
	}
	for _, step := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800} {
		if step >= least {
			return step
		}
	}
	return 3600 * decimalStep(least/3600)
}
