package images

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"podd/reconcile/checksum"
	"podd/reconcile/state"
	"podd/runtime/atomicfile"
)

const (
	// recordVersion is the version of the format of the record file.
	recordVersion = 1
	// maxRecordBytes is the maximum size of the record file. The record of an image needs about 130
	// bytes.
	maxRecordBytes = 8 << 20
	// maxStoredDuration limits the durations in the record file, so that computing with them does not
	// overflow.
	maxStoredDuration = 100 * 365 * 24 * time.Hour
)

// A record contains the use of an image. Its times have a monotonic clock reading.
type record struct {
	firstDetected time.Time
	lastUsed      time.Time // zero if the image was never in use
}

// storedRecords is the content of the record file. Durations are counted from the boot, so that
// steps of the wall clock do not make an image old. After another boot, the time between the last
// write and the boot is not counted, because only the wall clock measures it. So an image is removed
// too late rather than too early.
type storedRecords struct {
	Version int    `json:"version"`
	BootID  string `json:"boot"`
	// SinceBoot is the time since the boot at which the file was written.
	SinceBoot time.Duration           `json:"up"`
	Images    map[string]storedRecord `json:"images"`
}

// A storedRecord contains the times of a record as durations since the boot. A duration is negative
// for a time before the boot.
type storedRecord struct {
	FirstDetected time.Duration  `json:"detected"`
	LastUsed      *time.Duration `json:"used,omitempty"`
}

// encodeRecords returns the content of the record file.
func encodeRecords(records map[string]record, now state.ClockReading) ([]byte, error) {
	stored := storedRecords{Version: recordVersion, BootID: now.BootID, SinceBoot: now.SinceBoot, Images: map[string]storedRecord{}}
	for id, r := range records {
		s := storedRecord{FirstDetected: now.SinceBoot - now.Now.Sub(r.firstDetected)}
		if !r.lastUsed.IsZero() {
			s.LastUsed = new(now.SinceBoot - now.Now.Sub(r.lastUsed))
		}
		stored.Images[id] = s
	}
	data, err := checksum.Marshal(stored)
	if err == nil && len(data) > maxRecordBytes {
		err = fmt.Errorf("%d bytes are too much (limit %d)", len(data), maxRecordBytes)
	}
	return data, err
}

// decodeRecords returns the records in the content of a record file.
func decodeRecords(data []byte, now state.ClockReading) (map[string]record, error) {
	if err := checksum.Verify(data); err != nil {
		return nil, err
	}
	if err := checksum.CheckVersion(data, recordVersion); err != nil {
		return nil, err
	}
	var stored storedRecords
	if err := json.Unmarshal(data, &stored); err != nil {
		return nil, err
	}
	records := make(map[string]record, len(stored.Images))
	for id, s := range stored.Images {
		r := record{firstDetected: stored.time(s.FirstDetected, now)}
		if s.LastUsed != nil {
			r.lastUsed = stored.time(*s.LastUsed, now)
		}
		records[id] = r
	}
	return records, nil
}

// time converts a duration in s to a time, which is not later than now.
func (s *storedRecords) time(at time.Duration, now state.ClockReading) time.Time {
	at, writtenAt := limitDuration(at), limitDuration(s.SinceBoot)
	ago := max(writtenAt-at, 0) + now.SinceBoot
	if s.BootID != "" && s.BootID == now.BootID {
		ago = now.SinceBoot - at
	}
	return now.Now.Add(-max(ago, 0))
}

func limitDuration(d time.Duration) time.Duration {
	return min(max(d, -maxStoredDuration), maxStoredDuration)
}

// load reads the record file. If that fails, all images count as new, so that none is removed for
// its age.
func (m *Manager) load() {
	data, err := atomicfile.Read(m.o.RecordFile, maxRecordBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var records map[string]record
	if err == nil {
		records, err = decodeRecords(data, m.clock())
	}
	if err != nil {
		m.o.Log.Warn("reading the last use of images failed; all images count as new", "file", m.o.RecordFile, "err", err)
		return
	}
	m.records = records
}

// save writes the record file. It logs a failure once, because the disk may be full for a long time.
func (m *Manager) save() {
	data, err := encodeRecords(m.records, m.clock())
	if err == nil {
		err = atomicfile.Write(m.o.RecordFile, data)
	}
	if err != nil && !m.hasSaveFailed {
		m.o.Log.Warn("storing the last use of images failed; after a restart, podd does not know it", "file", m.o.RecordFile, "err", err)
	}
	m.hasSaveFailed = err != nil
}
