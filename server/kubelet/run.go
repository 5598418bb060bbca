package kubelet

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"podd/server"
)

// runSlots contains an element for each /run request in progress. It limits their number, because
// the whole output of each command is kept in memory.
var runSlots = make(chan struct{}, 4)

// run runs a command until it exits. For compatibility with the kubelet, it splits
// the command at single spaces, and the response's type is JSON although the output
// is plain text.
func (a *API) run(w http.ResponseWriter, r *http.Request) {
	command := r.URL.Query().Get("cmd")
	if command == "" {
		http.Error(w, "no command; pass it as the parameter cmd", http.StatusBadRequest)
		return
	}
	id := a.findContainer(w, r)
	if id == "" {
		return
	}
	select {
	case runSlots <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	defer func() { <-runSlots }()
	output, code, err := a.Runtime.Run(r.Context(), id, strings.Split(command, " "))
	switch {
	case err != nil:
		replyError(w, err)
	case code != 0:
		http.Error(w, fmt.Sprintf("command '%s' exited with %d: %.4096s", command, code, output), http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Write(output)
	}
}

// checkpoint writes the state of a container to a file of the host.
func (a *API) checkpoint(w http.ResponseWriter, r *http.Request) {
	var timeout time.Duration
	if s := r.URL.Query().Get("timeout"); s != "" {
		n, err := strconv.ParseUint(s, 10, 31)
		if err != nil {
			http.Error(w, fmt.Sprintf("timeout: %.40q is not a number of seconds", s), http.StatusBadRequest)
			return
		}
		timeout = time.Duration(n) * time.Second
	}
	p := a.findPod(w, r)
	if p == nil {
		return
	}
	id := a.findContainer(w, r)
	if id == "" {
		return
	}
	if err := os.MkdirAll(a.CheckpointDir, 0o700); err != nil {
		replyError(w, fmt.Errorf("creating the checkpoint directory: %w", err))
		return
	}
	name := fmt.Sprintf("checkpoint-%s_%s-%s-%s.tar", p.Pod.Name, p.Pod.Namespace, r.PathValue("container"), time.Now().Format(time.RFC3339))
	file := filepath.Join(a.CheckpointDir, name)
	if err := a.Runtime.Checkpoint(r.Context(), id, file, timeout); err != nil {
		replyError(w, fmt.Errorf("checkpointing container %s/%s/%s: %w", p.Pod.Namespace, p.Pod.Name, r.PathValue("container"), err))
		return
	}
	server.Reply(w, http.StatusOK, struct {
		Items []string `json:"items"`
	}{[]string{file}})
}
