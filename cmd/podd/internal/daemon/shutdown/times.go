package shutdown

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"podd/runtime/atomicfile"
)

// TimesFile is the name of the file of times in the root directory. A kubelet uses the same name and
// format.
const TimesFile = "graceful_node_shutdown_state"

// times contains the times at which the last shutdown began and ended. podd stores them in a file, so
// that it can report them after the next boot. If the file is lost, only the metrics of the shutdown
// are lost.
type times struct {
	StartTime time.Time `json:"startTime"`
	EndTime   time.Time `json:"endTime"` // zero if the shutdown has not ended
}

// readTimes returns the times in the file at path, or zero times if the file does not exist.
func readTimes(path string) (t times, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil {
		return times{}, fmt.Errorf("reading the times of the last shutdown: %w", err)
	}
	return t, nil
}

// setTimes reports t and writes it to the file. The caller must hold m.timesMu.
func (m *Manager) setTimes(t times) {
	m.times = t
	m.onTimes(t.StartTime, t.EndTime)
	data, err := json.Marshal(t)
	if err == nil {
		err = atomicfile.Write(m.timesPath, data)
	}
	if err != nil {
		m.log.Warn("storing the times of the node shutdown failed; the metrics of the shutdown are lost when podd restarts", "err", err)
	}
}

// endTimes records that the shutdown has ended, unless this is recorded already.
func (m *Manager) endTimes() {
	m.timesMu.Lock()
	defer m.timesMu.Unlock()
	if t := m.times; !t.StartTime.IsZero() && t.EndTime.IsZero() {
		t.EndTime = time.Now()
		m.setTimes(t)
	}
}

// recordStartTime records that a shutdown has begun.
func (m *Manager) recordStartTime() {
	m.timesMu.Lock()
	defer m.timesMu.Unlock()
	m.setTimes(times{StartTime: time.Now()})
}
