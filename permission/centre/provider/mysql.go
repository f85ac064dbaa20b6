package provider

import (
	"fmt"

	"github.com/breakwater-dev/breakwater/permission/api"
)

func (f Factory) newMySQL(api.Provider) (Caller, error) { return nil, fmt.Errorf("not yet") }

func checkMySQLParameters(api.Provider, map[string]string) error { return nil }
