package store

import (
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/store/queue"
)

// Store keeps what the clients of a node read. See the package comment.
type Store struct {
	lock  *disk.Lock
	queue *queue.Queue

	// flushing is held by the one that writes to the database or replaces it. catalog.mu guards all below.
	flushing sync.Mutex
	catalog

	freshWritten time.Time // catalog.freshAt, as the disk has it
	flushedAt    time.Time
	waitingSince time.Time // of what merely changed
	retryAt      time.Time
	retry        time.Duration
}
