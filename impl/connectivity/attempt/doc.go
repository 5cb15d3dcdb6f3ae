// Package attempt is what is said over a connection that is opened to see whether a way works: one request, so large
// that it takes several packets of any link. Where only small packets come through it is never answered.
//
// It starts no goroutine that outlives a call.
package attempt
