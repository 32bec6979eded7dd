from transformers.utils import logging

from listenwell.runtime.quiet import quiet_transformers


def test_transformers_is_quiet_only_while_we_use_it():
    logging.set_verbosity_info()
    logging.enable_progress_bar()
    try:
        with quiet_transformers():
            assert logging.get_verbosity() == logging.ERROR
            assert not logging.is_progress_bar_enabled()
        assert logging.get_verbosity() == logging.INFO
        assert logging.is_progress_bar_enabled()
        logging.disable_progress_bar()
        with quiet_transformers():
            pass
        assert not logging.is_progress_bar_enabled()
    finally:
        logging.set_verbosity_warning()
        logging.enable_progress_bar()
