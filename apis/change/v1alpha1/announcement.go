package v1alpha1

// Announce adds a change of state whose CloudEvent is to be sent. Of more than
// MaxAnnouncements the oldest are dropped.
func (s *ChangeWorkloadStatus) Announce(a Announcement) {
	s.Announcements = append(s.Announcements, a)
	if n := len(s.Announcements) - MaxAnnouncements; n > 0 {
		s.Announcements = s.Announcements[n:]
	}
}
