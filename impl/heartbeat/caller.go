package heartbeat

import "time"

const (
	patience   = 3           // reports that a leader sends without any answer to them
	firstPause = time.Minute // after those
	mostPause  = 10 * time.Minute
)

// Caller decides what a leader reports, and when. One whose reports are not answered pauses, longer and longer: there
// is no weir-manager, or an older one. It is not safe for concurrent use.
type Caller struct {
	period  uint64 // the newest that is known
	entries []Entry
	rosters [2]string // of the last reports, the newest first

	due    time.Duration // of the next report
	silent int           // reports since the last new receipt
	pause  time.Duration
}

// Due is when the next report is due.
func (c *Caller) Due() time.Duration { return c.due }

// Lead says that this hub leads from now on: the first report is due at once.
func (c *Caller) Lead(now time.Duration) {
	c.entries, c.rosters = nil, [2]string{}
	c.due, c.silent, c.pause = now, 0, 0
}

// Heard takes a period that a signed receipt has opened, whoever brought the receipt.
func (c *Caller) Heard(period uint64) { c.period = max(c.period, period) }

// Report is the one that is due now, of what was collected in the pool. left were left out for lack of room.
func (c *Caller) Report(now time.Duration, collected []Entry) (r Report, left int) {
	r, left = NewReport(c.period, append(c.entries, collected...))
	c.entries = nil
	c.rosters = [2]string{r.Roster(), c.rosters[0]}
	c.due = now + RollEvery
	return r, left
}

// Keep keeps entries for the next report.
func (c *Caller) Keep(collected []Entry) { c.entries = append(c.entries, collected...) }

// Answered takes the receipt that came with the answer to a report, as it was read, and returns the notice for the
// pool. progress: a receipt that this leader has not seen.
func (c *Caller) Answered(now time.Duration, r Receipt, text string) (n Notice, progress bool) {
	n.Receipt = text
	for _, roster := range c.rosters {
		if sumOf(roster) == r.roster {
			n.Roster = roster
		}
	}
	if progress = r.Period > c.period; progress {
		c.period, c.silent, c.pause = r.Period, 0, 0
		return n, true
	}
	c.Unanswered(now)
	return n, false
}

// Unanswered takes that a report had no new receipt, or did not arrive.
func (c *Caller) Unanswered(now time.Duration) {
	if c.silent++; c.silent >= patience {
		c.Refused(now)
	}
}

// Refused takes that the cloud refuses reports of this pool: there is no such Lease, or no right to it.
func (c *Caller) Refused(now time.Duration) {
	c.silent, c.entries = 0, nil
	c.pause = min(max(2*c.pause, firstPause), mostPause)
	c.due = now + c.pause
}
