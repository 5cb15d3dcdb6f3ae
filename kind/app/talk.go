package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// exit is the code with which this process ends.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// talk writes a numbered line again and again, beside what it serves.
func talk(every string) error {
	pause, err := time.ParseDuration(every)
	if err != nil {
		return err
	}
	if pause <= 0 {
		return fmt.Errorf("%s: want a time above zero", every)
	}
	go func() {
		for n := 1; ; n++ {
			fmt.Println("talk", n)
			time.Sleep(pause)
		}
	}()
	return serve()
}

// echo writes what it reads until that ends, and ends with a code.
func echo(code string) error {
	n, err := strconv.Atoi(code)
	if err != nil {
		return err
	}
	if _, err := io.Copy(os.Stdout, os.Stdin); err != nil || n == 0 {
		return err
	}
	return exit(n)
}
