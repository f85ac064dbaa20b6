package functions

// ConfigError reports an invalid configuration. Its message has no secret and may be
// shown to users.
type ConfigError struct {
	// Err names the invalid keys.
	Err error
}

// Error implements error.
func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap implements errors.Unwrap.
func (e *ConfigError) Unwrap() error { return e.Err }
