package reconcile

// WithDisk returns s with a disk that calls wait before each write.
func (s Journals) WithDisk(wait func()) Journals {
	s.replace = func(dir string, data []byte, durable bool) error {
		wait()
		return replace(dir, data, durable)
	}
	return s
}
