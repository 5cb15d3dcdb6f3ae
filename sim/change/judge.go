package change

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// What a verdict needs.
const (
	LeastSamples = 10    // of a time, in each round and on each side
	LeastRounds  = 3     // that must agree before a time is called worse or better
	Significance = 0.001 // of the test of a round
	noiseOfBytes = 2     // bytes must differ by so many times what the base differs from itself
	noiseOfTimes = 1.5   // and times by so many …
	leastTime    = 0.02  // … and by this share
	floorBytes   = 0.01  // of bytes and ratios of bytes with less than LeastSamples
	floorMemory  = 0.05
	leastMoments = 5 // in which a count was taken on all sides, …
	mostMoments  = 5 // and of which the head must be beyond both bases in all but one of so many
)

// Verdict is what became of a figure.
type Verdict string

// The verdicts.
const (
	Worse    Verdict = "worse"
	Better   Verdict = "better"
	Same     Verdict = "unchanged"
	Unjudged Verdict = "not judged" // too few samples
	New      Verdict = "new"        // the base has none
	Gone     Verdict = "gone"       // the head has none
)

// Bands are what earlier runs of one base taught: by what share a figure differs from itself.
type Bands map[string]float64

// Line is a figure with its verdict.
type Line struct {
	Figure
	Verdict  Verdict `json:"verdict"`
	Before   float64 `json:"before"` // medians
	After    float64 `json:"after"`
	Why      string  `json:"why"`                // the band, or the test
	Noise    float64 `json:"noise,omitempty"`    // of times: what the base differs from itself, as a share
	Accepted bool    `json:"accepted,omitempty"` // by a trailer
}

// Share is by how much of what it was a figure is more; infinite where it was nothing.
func (l Line) Share() float64 {
	switch {
	case l.After == l.Before:
		return 0
	case l.Before == 0:
		return math.Copysign(math.Inf(1), l.After)
	}
	return (l.After - l.Before) / math.Abs(l.Before)
}

// Judge gives figures their verdicts.
func Judge(figures []Figure, bands Bands) []Line {
	lines := make([]Line, 0, len(figures))
	for _, f := range figures {
		lines = append(lines, f.judge(bands[f.Key()]))
	}
	return lines
}

func (f Figure) judge(known float64) Line {
	l := Line{Figure: f}
	base, head := flat(f.Base, f.Again), flat(f.Head)
	if len(base) > 0 {
		l.Before = median(base)
	}
	if len(head) > 0 {
		l.After = median(head)
	}
	switch {
	case len(base) == 0 && len(head) == 0:
		l.Verdict, l.Why = Unjudged, "neither side has a sample"
	case len(base) == 0:
		l.Verdict, l.Why = New, "the base has none"
	case len(head) == 0:
		l.Verdict, l.Why = Gone, "the head has none"
	case f.Kind == Time:
		l.judgeTime(known)
	default:
		l.judgeBand(known)
	}
	return l
}

// judgeBand compares what does not depend on how fast the machine is.
func (l *Line) judgeBand(known float64) {
	base, head := flat(l.Base, l.Again), flat(l.Head)
	many := min(len(base), len(head)) >= LeastSamples
	share := known
	switch {
	case l.Kind == Memory:
		share = max(share, floorMemory)
	case l.Kind == Bytes && !many:
		share = max(share, floorBytes)
	}
	wide := share * math.Abs(l.Before)
	low, high := l.Before-wide, l.Before+wide
	switch again := flat(l.Again); {
	case !many: // all that the base did may be
		low, high = slices.Min(base)-wide, slices.Max(base)+wide
	case len(again) > 0:
		apart := noiseOfBytes * math.Abs(median(flat(l.Base))-median(again))
		low, high = low-apart, high+apart
	}
	l.Verdict = Same
	switch {
	case l.After > high:
		l.Verdict = Worse
	case l.After < low:
		l.Verdict = Better
	}
	p := 0.0
	if many && l.Verdict != Same {
		if p = differ(base, head); p >= Significance {
			l.Verdict = Same
		}
	}
	l.Why = "exact"
	if low != high {
		l.Why = fmt.Sprintf("the base had %s to %s", Format(low, l.Unit), Format(high, l.Unit))
	}
	l.Why += fmt.Sprintf(", n=%d and %d", len(base), len(head))
	if p > 0 {
		l.Why += fmt.Sprintf(", p = %.2g", p)
	}
	if beyond, moments := l.beyond(); l.Kind == Count && beyond != 0 {
		l.Verdict, l.Why = Worse, fmt.Sprintf("more than both bases in %d of %d moments", beyond, moments)
		if beyond < 0 {
			l.Verdict, l.Why = Better, fmt.Sprintf("less than both bases in %d of %d moments", -beyond, moments)
		}
	}
}

// beyond tells in how many moments, of all, the head had more than the base and its twin had at that moment; negative:
// less. 0: too few to say so. What the machine did at a moment all sides saw, so counts that change from one moment to
// the next are compared as well.
func (l *Line) beyond() (beyond, moments int) {
	base, again, head := flat(l.Base), flat(l.Again), flat(l.Head)
	if moments = len(head); len(base) != moments || len(again) != moments || moments < leastMoments {
		return 0, moments
	}
	more, less := 0, 0
	for i, v := range head {
		switch {
		case v > max(base[i], again[i]):
			more++
		case v < min(base[i], again[i]):
			less++
		}
	}
	enough := moments - moments/mostMoments
	switch {
	case more >= enough:
		return more, moments
	case less >= enough:
		return -less, moments
	}
	return 0, moments
}

// differ is how likely samples of one distribution are that far apart.
func differ(a, b []float64) float64 {
	thresholds := benchmath.Thresholds{CompareAlpha: Significance}
	return benchmath.AssumeNothing.Compare(benchmath.NewSample(slices.Clone(a), &thresholds),
		benchmath.NewSample(slices.Clone(b), &thresholds)).P
}

// judgeTime compares times round by round.
func (l *Line) judgeTime(known float64) {
	rounds := min(len(l.Base), len(l.Head))
	least := math.MaxInt
	for i := range rounds {
		least = min(least, len(flat(l.Base[i:i+1])), len(flat(l.Head[i:i+1])))
	}
	if rounds < LeastRounds || least < LeastSamples {
		l.Verdict = Unjudged
		l.Why = fmt.Sprintf("%d rounds, the smallest of %d samples: wants %d of %d", rounds, least*min(rounds, 1),
			LeastRounds, LeastSamples)
		if rounds == 0 {
			l.Why = fmt.Sprintf("no round: wants %d of %d samples", LeastRounds, LeastSamples)
		}
		return
	}
	l.Noise = known
	sides := make([]times, 0, rounds)
	for i := range rounds {
		t := l.round(i)
		if len(t.again) >= LeastSamples {
			l.Noise = max(l.Noise, math.Abs(median(t.again)/median(t.base)-1))
		}
		sides = append(sides, t)
	}
	band := max(noiseOfTimes*l.Noise, leastTime)
	slower, faster, worst := 0, 0, 0.0
	for _, t := range sides {
		base := slices.Concat(t.base, t.again)
		share, p := median(t.head)/median(base)-1, differ(base, t.head)
		worst = max(worst, p)
		switch {
		case p >= Significance:
		case share > band:
			slower++
		case share < -band:
			faster++
		}
	}
	l.Verdict = Same
	switch {
	case slower == rounds:
		l.Verdict = Worse
	case faster == rounds:
		l.Verdict = Better
	}
	agree := max(slower, faster)
	l.Why = fmt.Sprintf("noise ±%.1f %%, %d of %d rounds differ by more than %.1f %%, n=%d", 100*l.Noise, agree, rounds,
		100*band, least)
	if agree == rounds {
		l.Why += fmt.Sprintf(", p ≤ %.2g", worst)
	}
}

// times are the samples of one round.
type times struct{ base, again, head []float64 }

// round is one round. Where each sample was measured on all sides at the same moment, each is taken by what the base
// needed at that moment, the mean of its two: what else the machine did then falls out.
func (l *Line) round(i int) (t times) {
	t.base, t.head = flat(l.Base[i:i+1]), flat(l.Head[i:i+1])
	if i < len(l.Again) {
		t.again = flat(l.Again[i : i+1])
	}
	if len(t.again) != len(t.base) || len(t.head) != len(t.base) {
		return t
	}
	of := make([]float64, len(t.base))
	for k := range of {
		if of[k] = (t.base[k] + t.again[k]) / 2; of[k] <= 0 {
			return t
		}
	}
	var paired times
	for k, v := range of {
		paired.base, paired.again, paired.head = append(paired.base, t.base[k]/v), append(paired.again, t.again[k]/v),
			append(paired.head, t.head[k]/v)
	}
	return paired
}
