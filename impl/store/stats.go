package store

import (
	"time"
)

// Stats tells what a store holds and did.
type Stats struct {
	Collections, Complete, Watched int
	FileBytes, UsedBytes           int64
	PendingBytes                   int
	FreshAt                        time.Time // when the cloud was last reached
	Written                        int64     // bytes, since the start
	Flushes, Errors                int
	DamagedRows, SetAside, GivenUp int    // rows dropped; files removed; times that waiting rows were dropped
	Refused                        int    // rows that cannot be written
	Evicted, Forgotten             int    // components; collections
	Crowded                        bool   // what is protected leaves no room
	LastError                      string // "" if the last write succeeded
}
