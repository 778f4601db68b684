"""Names that no code of the package reads, because something else does: the allow list of vulture.

A name stands here with its reader. A name that has no reader goes from the package, not in here.
"""

# click asks its groups, types and options for these.
_.get_command
_.format_help_text
_.format_options
_.shell_complete
_.envvar_list_splitter

# sys and uvicorn read what is set here, and call what is defined.
_.unraisablehook
_.capture_signals
_.force_exit
_.send_400_response
_.disconnected
_.eof_received

# h2 and hpack read what is set here, and call what is defined; uvicorn reads the last.
_.MAX_CLOSED_STREAMS
_._terminate_connection
_.local_settings
_.max_header_list_size
_.limit_concurrency

# Messages of protobuf, which are sent.
_.valid_host
_.base_type_name
_.error_message

# A task that is only held is kept from the garbage collector.
_._task

# pydantic reads fields of models and their configuration by name; so do rows of tables.
_.model_config
_.back_channel_logout_uri
_.login_version
_.styling_type
_.auto_register
_.is_linking_allowed
_.is_creation_allowed
_.is_auto_creation
_.is_auto_update
_.auto_linking
_.provider_options
_.project_role_assertion
_.project_role_check
_.has_project_check
_.private_labeling_setting
_.recorded_at
_.kept_until
_.format_version
_.integrity

# http.server calls it.
_.do_POST

# uvicorn calls it now and then.
_.callback_notify
_.timeout_notify
