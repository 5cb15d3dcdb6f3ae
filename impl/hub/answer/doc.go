// Package answer writes the answers that a hub gives itself, such as errors, and gets all answers to their clients.
//
// Unavailable and the like word a refusal as kube-apiserver would, so that clients do what is right then. Write sends
// one. A Recorder notes what was answered; Stalls ends answers whose client takes nothing; Whole makes a watch that the
// cloud gives end behind a whole frame. NewStalls starts nothing; Stalls.Run blocks until its context ends.
package answer
