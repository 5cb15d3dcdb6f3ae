package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// inPod are the commands of a pod that calls the Kubernetes API.
func inPod(args []string) error {
	switch {
	case args[0] == "read" && len(args) == 4:
		every, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		return read(every, args[2], args[3])
	case args[0] == "write" && len(args) == 3:
		return write(args[1], args[2])
	}
	return fmt.Errorf("arguments %q: want read EVERY FOLDER NAME, or write NAMESPACE NAME", args)
}

// inCluster is the client that a pod makes of what its kubelet gives it, and where that leads.
func inCluster() (*kubernetes.Clientset, string, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, "", err
	}
	config.Timeout = 5 * patience // a machine that is busy is not an API that is away
	client, err := kubernetes.NewForConfig(config)
	return client, strings.TrimPrefix(config.Host, "https://"), err
}

// read lists EndpointSlices of its namespace again and again until it is told to end, and appends a line for each list
// to a file of its host's name in a folder: the time, whom it called, and "ok" or why it failed.
func read(every time.Duration, folder, name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	out, err := os.OpenFile(filepath.Join(folder, name+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	client, at, err := inCluster()
	if err != nil {
		return err
	}
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return err
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		_, err := client.DiscoveryV1().EndpointSlices(string(namespace)).List(ctx, metav1.ListOptions{})
		if ctx.Err() != nil {
			return nil
		}
		said := "ok"
		if err != nil {
			said = "failed: " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		if _, err := fmt.Fprintln(out, time.Now().UTC().Format(time.RFC3339), at, said); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// write makes a ConfigMap, and takes it away.
func write(namespace, name string) error {
	ctx, stop := context.WithTimeout(context.Background(), 5*patience)
	defer stop()
	client, at, err := inCluster()
	if err != nil {
		return err
	}
	maps := client.CoreV1().ConfigMaps(namespace)
	if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := maps.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	fmt.Println("written at", at)
	return nil
}
