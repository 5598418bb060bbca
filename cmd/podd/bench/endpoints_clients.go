package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

// measureClients measures the cost of many clients that follow logs and watch pods.
func (b *bench) measureClients(ctx context.Context, e *endpoints) error {
	pid := b.daemon.cmd.Process.Pid
	memoryBefore, err := b.measureIdleMemory(ctx)
	if err != nil {
		return err
	}
	instances, err := countInotifyInstances(pid)
	if err != nil {
		return err
	}
	var conns []net.Conn
	var readers sync.WaitGroup
	defer func() {
		for _, c := range conns {
			c.Close()
		}
		readers.Wait()
	}()
	connect := func(path string) error {
		c, response, err := e.openStream(ctx, path)
		if err == nil {
			conns = append(conns, c)
			readers.Go(func() { io.Copy(io.Discard, response) })
		}
		return err
	}
	for i := range followerCount {
		// This is the name of a pod of this measurement. Names contain increasing numbers, and
		// these pods have the highest numbers, because they were created last.
		name := fmt.Sprintf("p%d-%s", b.podsCreated-i%endpointPodCount, nodeName)
		if err := connect("/containerLogs/default/" + name + "/" + containerName + "?follow=true"); err != nil {
			return err
		}
	}
	for range watcherCount {
		if err := connect("/api/v1/pods?watch=1"); err != nil {
			return err
		}
	}
	cpuSeconds := measureCPU(pid)
	memoryWithClients, err := b.measureIdleMemory(ctx)
	if err != nil {
		return err
	}
	share := 100 * cpuSeconds() / idleTime.Seconds()
	now, err := countInotifyInstances(pid)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d clients that follow logs, %d that watch pods: ", followerCount, watcherCount)
	b.table.add(row{name: name + "RSS (bare: without these clients)", unit: megabytes, bare: samples{memoryBefore}, podd: samples{memoryWithClients}, goal: goal{factor: 1, offset: 60e6}})
	b.table.add(row{name: name + "inotify instances (bare: without these clients)", unit: countUnit, bare: samples{float64(instances)}, podd: samples{float64(now)}, goal: goal{factor: 1, offset: 1}})
	b.table.add(row{name: name + "idle CPU", unit: percent, podd: samples{share}})
	return nil
}

var countUnit = unit{1, "%.0f"}

// openStream requests a streaming response of the kubelet API. It returns the connection and a
// reader for the response after its status line.
func (e *endpoints) openStream(ctx context.Context, path string) (net.Conn, io.Reader, error) {
	c, err := (&tls.Dialer{Config: e.tls}).DialContext(ctx, "tcp", e.kubeletAddress)
	if err != nil {
		return nil, nil, err
	}
	r := bufio.NewReaderSize(c, 1<<10)
	var line string
	if _, err = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err == nil {
		line, err = r.ReadString('\n')
	}
	if err == nil && !strings.Contains(line, fmt.Sprint(" ", http.StatusOK, " ")) {
		err = fmt.Errorf("GET %s: got %s, want status 200", path, strings.TrimSpace(line))
	}
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return c, r, nil
}
