// Package kind holds no Go code: it is the folder of what kind clusters need (README.md), and its test keeps the
// versions in it together.
package kind
