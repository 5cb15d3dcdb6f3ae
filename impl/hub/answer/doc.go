// Package answer is what a hub says itself, and how answers get to their clients, whoever gives them.
//
// Unavailable and the like word a refusal as kube-apiserver would, so that clients do what is right then. Write sends
// one. A Recorder notes what was answered; Stalls ends answers whose client takes nothing; Whole makes a watch that the
// cloud gives end behind a whole frame. NewStalls starts nothing; Stalls.Run blocks until its context ends.
package answer
